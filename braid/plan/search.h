// The best layouts of a run on a cluster, found without looking at all of them.
//
// Layouts are taken in the order of a lower bound of their step. When the bound of the next one is above the step of
// the worst that would be kept, all the rest are no better. The result is that of predicting every one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/plan/cluster_predictor.h"
#include "braid/plan/goodput.h"
#include "braid/plan/layout_space.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The result of a search: the best layouts, each with its prediction and the reason why it is among them.

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

struct SearchRequest {
  SpaceRequest space;
  int64_t memory_bytes = 0;  // of a device
  int top = 5;
};

// The `top` layouts that fit, have no problems(), and take the shortest step; of equals the one that comes first in the
// space. Without reasons (reasons.h).
Plan search(const SearchRequest& request, Predictor& foresight);

// Why braid does not train a run, whatever data there are; none for a legal one, which is_legal() says sooner.
std::vector<Problem> problems_to_train(RunSpec spec);
bool is_legal(RunSpec spec);

// A layout as it is predicted and run: a balanced cut and balanced shares are made, and recompute that is still to be
// chosen is chosen stage by stage, from "none" to "selective" to "full" where a rank is above its memory. Nothing where
// the balanced cut is the even one, or balanced shares are equal, which is another layout's.
std::optional<PlannedLayout> planned_layout(const SearchRequest& request, const LayoutPoint& layout,
                                            Predictor& foresight);

}  // namespace braid::plan
