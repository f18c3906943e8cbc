// The durations of actions.
#pragma once

#include <optional>
#include <vector>

#include "braid/schedule/action.h"

namespace braid::schedule {

// The largest time of one action: sums over the longest schedules stay exact enough to be compared.
inline constexpr double kMostTime = 1e15;

// Times of one stage, in the unit of the cost model.
struct StageTimes {
  double forward = 1;
  double input_grad = 1;
  double weight_grad = 1;
  std::optional<double> recompute = {};  // empty: as long as the forward
  double update = 0;
  bool operator==(const StageTimes&) const = default;
};

// In any one unit of time.
struct CostModel {
  double forward = 1;
  double input_grad = 1;
  double weight_grad = 1;
  double transfer = 0;                    // latency of one tensor between two ranks; it occupies neither
  std::optional<double> overlapped = {};  // of a fused pair; empty: the sum of its two actions
  std::optional<double> recompute = {};   // empty: as long as the forward
  double update = 0;
  std::vector<StageTimes> stages = {};  // one for each stage, in place of the times above; empty: the same on all

  // Returns the time of a compute action; a full backward takes input_grad + weight_grad. 0 for other actions.
  double compute(const Action& action) const;
  double compute_pair(const Action& forward, const Action& backward) const;
};

// The costs of stages that hold `share` of the layers: every action that computes takes that share of its time, and
// transfers take as long as before. `cost` has no times of single stages (check).
CostModel with_share(CostModel cost, double share);

}  // namespace braid::schedule
