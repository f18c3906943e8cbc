// The all-reduce of gradients in buckets. All buckets are launched before the first wait. The uses of tied parameters
// are added at the end.
#include "braid/sync/bucketed_all_reduce.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/tied_uses.h"

namespace braid::sync {
namespace {

TunerOptions tuner_options(const SyncSpec& spec) {
  using enum TunerOptions::Choice;
  return {.first = {spec.overlap == OverlapChoice::Off ? Overlap::Off : Overlap::On, spec.bucket_mb},
          .overlap = spec.overlap == OverlapChoice::Auto ? Measured : Given,
          .buckets = spec.tune_buckets == OnOff::On ? Measured : Given};
}

// Returns the number of the group that sums the parameter's gradient. 0 is the replicas, and 1 + i is apart[i].
size_t sum_of(const param::Parameter& param, const std::vector<SumGroup>& apart) {
  const mesh::AxisSet axes = mesh::summed_axes(param.placement);
  if (axes == mesh::kSampleAxes) return 0;
  const auto found = std::find_if(apart.begin(), apart.end(), [&](const SumGroup& each) { return each.axes == axes; });
  check(found != apart.end(), cat(param.name, ": gradients are summed over ranks for which there is a group"));
  return 1 + static_cast<size_t>(found - apart.begin());
}

}  // namespace

BucketedAllReduce::BucketedAllReduce(const SyncSpec& spec, param::ParamStore& store, ReplicaGroups groups,
                                     AllReduceOptions options)
    : spec_(spec),
      store_(store),
      groups_(groups),
      apart_(std::move(options.apart)),
      model_part_(options.model_part),
      tuner_(tuner_options(spec), groups.replicas) {
  for (const param::Parameter& param : store.params()) sum_of_param_.push_back(sum_of(param, apart_));
  sums_.push_back(std::make_unique<BucketSums>(store, groups.replicas, std::move(options.reducer)));
  for (SumGroup& each : apart_) {
    sums_.push_back(std::make_unique<BucketSums>(store, *each.ranks, std::move(each.reducer)));
  }
  make_plans();
}

void BucketedAllReduce::make_plans() {
  spec_.bucket_mb = tuner_.ways().bucket_mb;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const auto here = [&](const param::Parameter& param) { return sum_of_param_[param.index] == i; };
    sums_[i]->follow(bucket_plan(store_, spec_, here));
  }
}

void BucketedAllReduce::begin_step(int64_t step) {
  for (const auto& sums : sums_) sums->reducer().begin_step(step);
}

void BucketedAllReduce::ready(const param::Parameter& param) {
  BucketSums& sums = *sums_[sum_of_param_[param.index]];
  sums.ready(param);
  if (tuner_.ways().overlap == Overlap::On) sums.launch_complete();
}

void BucketedAllReduce::flush() {
  for (const auto& sums : sums_) sums->launch_all();
}

void BucketedAllReduce::finish() {
  flush();
  for (const auto& sums : sums_) sums->finish();
  bytes_of_ties_ += add_tied_uses(store_, groups_.tied);
  choose_ways();
}

int64_t BucketedAllReduce::final_from() const {
  int64_t from = 0;
  for (const auto& sums : sums_) from = std::max(from, sums->final_from());
  return from;
}

int64_t BucketedAllReduce::bytes_sent() const {
  int64_t bytes = bytes_of_ties_;
  for (const auto& sums : sums_) bytes += sums->reducer().bytes_sent();
  return bytes;
}

// Returns the state with its name in a checkpoint. First and last stage may both hold a tied parameter, with different
// residuals, so the name contains the number of the rank's first use unless that is 0.
ReplicationState BucketedAllReduce::saved(const ReducerState& state) const {
  const param::Parameter& param = store_[state.param];
  const size_t sum = sum_of_param_[param.index];
  const std::string name = param.local_uses.front() > 0 ? cat(param.name, "#", param.local_uses.front()) : param.name;
  if (state.kind == ReducerState::Kind::Residual) {
    return {cat(kReducerState, "residual/replica.", sums_[sum]->group().rank(), "/", name), param.placement,
            state.tensor};
  }
  const int part = sum == 0 ? model_part_ : apart_[sum - 1].model_part;
  return {cat(kReducerState, "directions/part.", part, "/", name), mesh::replicated(state.tensor.sizes().vec()),
          state.tensor};
}

std::vector<ReplicationState> BucketedAllReduce::state() {
  std::vector<ReplicationState> all;
  for (const auto& sums : sums_) {
    for (const ReducerState& each : sums->reducer().state()) all.push_back(saved(each));
  }
  return all;
}

// A step is measured from one finish() to the next, because the cost or gain of overlap may occur anywhere in it.
void BucketedAllReduce::choose_ways() {
  if (tuner_.done()) return;
  const double now = now_seconds();
  const SyncWays before = tuner_.ways();
  const auto choice = tuner_.step_over(now - last_finish_);
  last_finish_ = now;
  if (tuner_.ways().bucket_mb != before.bucket_mb) make_plans();
  if (choice && on_choice) on_choice(*choice);
}

}  // namespace braid::sync
