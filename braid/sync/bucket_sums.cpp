// Launching buckets in the agreed order.
#include "braid/sync/bucket_sums.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/reducers/plain_reducer.h"

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

BucketSums::BucketSums(param::ParamStore& store, Communicator& group, std::unique_ptr<GradReducer> reducer)
    : store_(store), group_(group), reducer_(reducer ? std::move(reducer) : std::make_unique<PlainReducer>(group)) {}

void BucketSums::follow(BucketPlan plan) {
  plan_ = std::move(plan);
  order_.reset(plan_);
  order_is_learnt_ = false;
  reducer_->plan({store_.flat_grads().options(), plan_.buckets});
}

at::Tensor BucketSums::slice(int bucket) const {
  const BucketShape& shape = plan_.buckets[bucket];
  return store_.flat_grads().narrow(0, shape.begin, shape.end - shape.begin);
}

void BucketSums::launch_complete() {
  while (const auto bucket = order_.take()) reducer_->start(*bucket, slice(*bucket));
}

void BucketSums::launch_all() {
  check(order_.all_ready(), "every parameter is ready when a stage's backward is over");
  launch_complete();
}

void BucketSums::finish() {
  for (const int bucket : order_.order()) reducer_->advance(bucket);
  for (const int bucket : order_.order()) reducer_->finish(bucket);
  if (!order_is_learnt_) learn_order();
  order_.begin_step();
}

// These few bytes, once, are not gradients and not counted.
void BucketSums::learn_order() {
  order_is_learnt_ = true;
  const auto& seen = order_.seen();
  if (group_.size() == 1 || seen.empty()) return;
  const at::Tensor agreed = at::empty({static_cast<int64_t>(seen.size())}, at::kLong);
  int64_t* buckets = agreed.mutable_data_ptr<int64_t>();
  std::copy(seen.begin(), seen.end(), buckets);
  group_.broadcast(agreed, 0).wait_host();
  order_.follow({buckets, buckets + seen.size()});
}

}  // namespace braid::sync
