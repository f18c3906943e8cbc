// Launching buckets in the agreed order, and adding the uses of tied parameters at the end.
#include "braid/sync/bucketed_all_reduce.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/reducers/plain_reducer.h"
#include "braid/sync/tied_uses.h"

namespace braid {
namespace {

TunerOptions tuner_options(const SyncSpec& spec) {
  using enum TunerOptions::Choice;
  return {.first = {spec.overlap == OverlapChoice::Off ? Overlap::Off : Overlap::On, spec.bucket_mb},
          .overlap = spec.overlap == OverlapChoice::Auto ? Measured : Given,
          .buckets = spec.tune_buckets == OnOff::On ? Measured : Given};
}

}  // namespace

BucketedAllReduce::BucketedAllReduce(const SyncSpec& spec, ParamStore& store, ReplicaGroups groups,
                                     AllReduceOptions options)
    : spec_(spec),
      store_(store),
      groups_(groups),
      reducer_(options.reducer ? std::move(options.reducer) : std::make_unique<PlainReducer>(groups.data)),
      model_part_(options.model_part),
      tuner_(tuner_options(spec), groups.data) {
  make_plan();
}

void BucketedAllReduce::make_plan() {
  spec_.bucket_mb = tuner_.ways().bucket_mb;
  plan_ = bucket_plan(store_, spec_);
  order_.reset(plan_);
  order_is_learnt_ = false;
  reducer_->plan({store_.flat_grads().options(), plan_.buckets});
}

at::Tensor BucketedAllReduce::slice(int bucket) const {
  const BucketShape& shape = plan_.buckets[bucket];
  return store_.flat_grads().narrow(0, shape.begin, shape.end - shape.begin);
}

void BucketedAllReduce::ready(const Parameter& param) {
  order_.ready(param.name);
  if (tuner_.ways().overlap == Overlap::On) launch_complete();
}

void BucketedAllReduce::launch_complete() {
  while (const auto bucket = order_.take()) reducer_->start(*bucket, slice(*bucket));
}

void BucketedAllReduce::flush() {
  check(order_.all_ready(), "every parameter is ready when a stage's backward is over");
  launch_complete();
}

void BucketedAllReduce::finish() {
  flush();
  for (const int bucket : order_.order()) reducer_->advance(bucket);
  for (const int bucket : order_.order()) reducer_->finish(bucket);
  bytes_of_ties_ += add_tied_uses(store_, groups_.tied);
  if (!order_is_learnt_) learn_order();
  choose_ways();
  order_.begin_step();
}

// Both ends of a pipeline may hold a tied parameter, and owe different residuals: the second end is told by its use.
ReplicationState BucketedAllReduce::saved(const ReducerState& state) const {
  const Parameter& param = store_[state.param];
  const std::string name = param.local_uses.front() > 0 ? cat(param.name, "#", param.local_uses.front()) : param.name;
  if (state.kind == ReducerState::Kind::Residual) {
    return {cat(kReducerState, "residual/replica.", groups_.data.rank(), "/", name), param.placement, state.tensor};
  }
  return {cat(kReducerState, "directions/part.", model_part_, "/", name), replicated(state.tensor.sizes().vec()),
          state.tensor};
}

std::vector<ReplicationState> BucketedAllReduce::state() {
  std::vector<ReplicationState> all;
  for (const ReducerState& each : reducer_->state()) all.push_back(saved(each));
  return all;
}

// These few bytes, once, are not gradients and not counted.
void BucketedAllReduce::learn_order() {
  order_is_learnt_ = true;
  if (groups_.data.size() == 1) return;
  const auto& seen = order_.seen();
  const at::Tensor agreed = at::empty({static_cast<int64_t>(seen.size())}, at::kLong);
  int64_t* buckets = agreed.mutable_data_ptr<int64_t>();
  std::copy(seen.begin(), seen.end(), buckets);
  groups_.data.broadcast(agreed, 0).wait_host();
  order_.follow({buckets, buckets + seen.size()});
}

// A step takes from one finish() to the next: what overlap costs or wins may show anywhere in it.
void BucketedAllReduce::choose_ways() {
  if (tuner_.done()) return;
  const double now = now_seconds();
  const SyncWays before = tuner_.ways();
  const auto choice = tuner_.step_over(now - last_finish_);
  last_finish_ = now;
  if (tuner_.ways().bucket_mb != before.bucket_mb) make_plan();
  if (choice && on_choice) on_choice(*choice);
}

}  // namespace braid
