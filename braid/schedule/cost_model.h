// The durations of actions, and the file of measured stage times.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/schedule/action.h"

namespace braid::schedule {

// The largest time of one action. Sums over the longest schedules stay exact enough to be compared.
inline constexpr double kMostTime = 1e15;

// The times of one stage, in the unit of the cost model.
struct StageTimes {
  double forward = 1;
  double input_grad = 1;
  double weight_grad = 1;
  std::optional<double> recompute = {};  // empty: as long as the forward
  double update = 0;
  bool operator==(const StageTimes&) const = default;
};

// The times of actions and transfers, in any one unit.
struct CostModel {
  double forward = 1;
  double input_grad = 1;
  double weight_grad = 1;
  double transfer = 0;                    // latency of one tensor between two ranks; occupies neither rank
  std::optional<double> overlapped = {};  // time of a fused pair; empty: the sum of its two actions
  std::optional<double> recompute = {};   // empty: as long as the forward
  double update = 0;
  std::vector<StageTimes> stages = {};  // times of each stage, replacing those above; empty: the same on all stages

  // Returns the time of a compute action; a full backward takes input_grad + weight_grad. 0 for other actions.
  double compute(const Action& action) const;
  double compute_pair(const Action& forward, const Action& backward) const;
};

// Returns the costs of stages that hold the fraction `share` of the layers. The times of compute actions are multiplied
// by `share`; transfers take as long as before. REQUIRES: `cost.stages` is empty.
CostModel with_share(CostModel cost, double share);

// Parses the text of a file of measured stage times. It has one line per stage, stage 0 first. A line has the times of
// a forward, an input-gradient and a weight-gradient pass, and optionally of a recompute and an update. Times are from
// 0 to kMostTime, in any one unit, and separated by blanks. A # begins a comment, and blank lines are ignored.
//
//   # forward  input_grad  weight_grad  recompute  update
//   1.5        1.25        1.0
//   1.0        1.0         1.0          1.0        0.5
//
// Throws ConfigError naming every invalid line; `origin` names the text.
std::vector<StageTimes> parse_stage_times(std::string_view text, const std::string& origin);

}  // namespace braid::schedule
