// The result of a search: the best layouts, each with its prediction and the reason why it is among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/plan/goodput.h"
#include "braid/plan/layout_point.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Measurements of some steps on this host.
struct MeasuredLayout {
  double step_seconds = 0;
  double bubble = 0;
  double peak_bytes = 0;  // of the fullest rank
};

struct PlannedLayout {
  LayoutPoint layout;
  RunSpec spec;  // the run with it
  Prediction prediction;
  FailureModel failures;                   // of the ranks on their cluster
  std::vector<std::string> overrides;      // that make the run this one: "mesh.pipe=4"
  std::string why;                         // sentences: beside its neighbours, and what limits it
  std::optional<MeasuredLayout> measured;  // where it was tried
};

struct Plan {
  int64_t searched = 0;                // layouts that were looked at or proven to be no better
  double seconds = 0;                  // of searching
  std::vector<PlannedLayout> layouts;  // the best first
  std::string shortage;  // where no layout fits: what is short, and the smallest cluster that would do. Else empty
};

}  // namespace braid::plan
