// Launching buckets in the agreed order.
#include "braid/sync/bucket_sums.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/sync/reducers/plain_reducer.h"

namespace braid::sync {

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
