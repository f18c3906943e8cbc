// Counting down.
#include "braid/sync/launch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::sync {

void LaunchOrder::reset(const BucketPlan& plan) {
  plan_ = &plan;
  order_.resize(plan.buckets.size());
  std::iota(order_.begin(), order_.end(), 0);
  begin_step();
}

void LaunchOrder::begin_step() {
  missing_.clear();
  for (const BucketShape& bucket : plan_->buckets) missing_.push_back(static_cast<int>(bucket.slices.size()));
  seen_.clear();
  ready_.clear();
  next_ = 0;
}

void LaunchOrder::ready(const std::string& param) {
  const auto buckets = plan_->of_param.find(param);
  check(buckets != plan_->of_param.end(), cat("no gradient is called ", param));
  check(ready_.insert(param).second, cat(param, ": a parameter is ready once per step"));
  for (const int bucket : buckets->second) {
    if (--missing_[bucket] == 0) seen_.push_back(bucket);
  }
}

bool LaunchOrder::all_ready() const { return ready_.size() == plan_->of_param.size(); }

std::optional<int> LaunchOrder::take() {
  if (next_ == order_.size() || missing_[order_[next_]] > 0) return std::nullopt;
  return order_[next_++];
}

void LaunchOrder::follow(std::vector<int> order) {
  check(std::is_permutation(order.begin(), order.end(), order_.begin(), order_.end()),
        "an order of launches has every bucket once");
  order_ = std::move(order);
}

}  // namespace braid::sync
