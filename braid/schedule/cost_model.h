// The durations of actions, and the file of measured stage times.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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

// The file of stage times: what a profile of a model measured, for the simulator. It works on text; files are the
// caller's.

// One line per stage, stage 0 first: the times of a forward, an input-gradient and a weight-gradient pass, and where
// wanted of a recompute and of an update, all from 0 to kMostTime, in any one unit and separated by blanks. What
// follows a # is a comment, lines without a number do not count.
//
//   # forward  input_grad  weight_grad  recompute  update
//   1.5        1.25        1.0
//   1.0        1.0         1.0          1.0        0.5
//
// Throws ConfigError naming every line that does not fit; `origin` names the text.
std::vector<StageTimes> parse_stage_times(std::string_view text, const std::string& origin);

}  // namespace braid::schedule
