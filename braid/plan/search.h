// Finds the best layouts of a run on a cluster without predicting all of them.
//
// Layouts are visited in the order of a lower bound on their step time. The search ends when the next bound exceeds the
// step time of the worst of the `top` layouts found so far: no remaining layout is better. The result is the same as if
// every layout were predicted.
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

// Measurements of some steps of a layout on this host.
struct MeasuredLayout {
  double step_seconds = 0;
  double bubble = 0;
  double peak_bytes = 0;  // peak memory of the fullest rank
};

// A layout with its prediction and the reason why it was chosen.
struct PlannedLayout {
  LayoutPoint layout;
  RunSpec spec;  // the run with this layout
  Prediction prediction;
  FailureModel failures;                   // failures of its ranks on the cluster
  std::vector<std::string> overrides;      // arguments that give the run this layout: "mesh.pipe=4"
  std::string why;                         // sentences: a comparison with its neighbours, and what limits it
  std::optional<MeasuredLayout> measured;  // set if it was tried
};

// The result of a search.
struct Plan {
  int64_t searched = 0;                // number of layouts, whether predicted or excluded by their bounds
  double seconds = 0;                  // duration of the search
  std::vector<PlannedLayout> layouts;  // best first
  std::string shortage;                // if no layout fits: what is missing, and a cluster that suffices; else empty
};

struct SearchRequest {
  SpaceRequest space;
  int64_t memory_bytes = 0;  // usable memory of the smallest device
  int top = 5;               // number of layouts to find
};

// Returns the `top` layouts with the shortest steps among those that fit and are legal (is_legal()). Among equal steps,
// the layout that comes first in layout_space() wins. Does not set PlannedLayout::why; add_reasons() (reasons.h) does.
Plan search(const SearchRequest& request, Predictor& predictor);

// Returns the reasons why braid cannot train a run; empty for a legal run. Missing data paths are no reason. is_legal()
// is faster.
std::vector<Problem> problems_to_train(RunSpec spec);
bool is_legal(RunSpec spec);

// Returns a layout with its prediction. Chooses the values for a balanced cut, for balanced shares and for recompute
// ByStage: each stage of a rank that exceeds its memory goes from "none" to "selective" to "full". Returns nothing if
// the balanced cut is the even one or the balanced shares are equal, because another layout of the space has these
// values.
std::optional<PlannedLayout> planned_layout(const SearchRequest& request, const LayoutPoint& layout,
                                            Predictor& predictor);

}  // namespace braid::plan
