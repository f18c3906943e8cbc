// Sums over ranges of units, computed once.
#include "braid/plan/stage_costs.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::plan {

StageCosts::StageCosts(const PartitionRequest& request)
    : num_units_(static_cast<int>(request.units.size())), num_stages_(0), speeds_(request.speeds) {
  int num_ranks = 0;
  for (const Holder& holder : request.holders) {
    num_stages_ = std::max(num_stages_, holder.stage + 1);
    num_ranks = std::max(num_ranks, holder.rank + 1);
  }
  if (speeds_.empty()) speeds_.assign(num_ranks, 1);
  check(static_cast<int>(speeds_.size()) >= num_ranks, "every rank has a speed");
  holders_.resize(num_stages_);
  slowest_.assign(num_stages_, 0);
  for (const Holder& holder : request.holders) {
    const double speed = speeds_[holder.rank];
    check(speed > 0 && holder.share > 0 && holder.in_flight >= 0, "a holder works");
    double& slowest = slowest_[holder.stage];
    slowest = holders_[holder.stage].empty() ? speed : std::min(slowest, speed);
    holders_[holder.stage].push_back(holder);
  }
  for (const auto& of_stage : holders_) check(!of_stage.empty(), "every stage has a holder");

  seconds_.assign((num_units_ + 1) * (num_units_ + 1), 0);
  fixed_before_ = activation_before_ = {0};
  for (int begin = 0; begin < num_units_; ++begin) {
    const Unit& unit = request.units[begin];
    fixed_before_.push_back(fixed_before_.back() + unit.fixed_bytes);
    activation_before_.push_back(activation_before_.back() + unit.activation_bytes);
    double sum = 0;
    for (int end = begin + 1; end <= num_units_; ++end) {
      sum += request.units[end - 1].seconds();
      seconds_[begin * (num_units_ + 1) + end] = sum;
    }
  }
}

int64_t StageCosts::bytes(const Holder& holder, int begin, int end) const {
  return fixed_before_[end] - fixed_before_[begin] +
         holder.in_flight * (activation_before_[end] - activation_before_[begin]);
}

Partition StageCosts::partition(std::vector<int> first_unit) const {
  Partition made;
  made.rank_seconds.assign(num_ranks(), 0);
  made.rank_bytes.assign(num_ranks(), 0);
  for (int stage = 0; stage < num_stages_; ++stage) {
    const int begin = first_unit[stage], end = first_unit[stage + 1];
    made.stage_seconds.push_back(stage_seconds(stage, begin, end));
    for (const Holder& holder : holders_[stage]) {
      made.rank_seconds[holder.rank] += load(holder, begin, end);
      made.rank_bytes[holder.rank] += bytes(holder, begin, end);
    }
  }
  made.first_unit = std::move(first_unit);
  return made;
}

Score score(const Partition& partition, int64_t limit_bytes) {
  Score score;
  const int64_t fullest = *std::max_element(partition.rank_bytes.begin(), partition.rank_bytes.end());
  if (limit_bytes > 0) score.bytes_over = std::max<int64_t>(0, fullest - limit_bytes);
  score.rank_seconds = *std::max_element(partition.rank_seconds.begin(), partition.rank_seconds.end());
  score.stage_seconds = *std::max_element(partition.stage_seconds.begin(), partition.stage_seconds.end());
  for (const double seconds : partition.stage_seconds) score.squares += seconds * seconds;
  return score;
}

}  // namespace braid::plan
