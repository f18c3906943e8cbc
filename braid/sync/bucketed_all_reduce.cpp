// Launching buckets in the order of the plan, and adding the uses of tied parameters at the end.
#include "braid/sync/bucketed_all_reduce.h"

#include "braid/base/errors.h"

namespace braid {
namespace {

int64_t aligned(int64_t elements) {
  return (elements + ParamStore::kAlign - 1) / ParamStore::kAlign * ParamStore::kAlign;
}

// 2 (n - 1) / n of the buffer, the ring all-reduce (Patarasuk & Yuan 2009).
int64_t ring_bytes(const at::Tensor& tensor, int ranks) {
  return 2 * static_cast<int64_t>(tensor.nbytes()) * (ranks - 1) / ranks;
}

class BucketBuilder {
 public:
  BucketBuilder(const SyncSpec& spec, int64_t element_bytes) : spec_(spec), element_bytes_(element_bytes) {}

  // Slices come in descending order of their place in the flat buffer, without gaps.
  void add(const std::string& param, int64_t begin, int64_t end) {
    if (plan.buckets.empty() || full() || plan.buckets.back().begin != end) plan.buckets.push_back({begin, end, 0});
    plan.buckets.back().begin = begin;
    plan.buckets.back().num_params += 1;
    plan.of_param[param].push_back(static_cast<int>(plan.buckets.size()) - 1);
  }

  BucketPlan plan;

 private:
  bool full() const {
    const auto& last = plan.buckets.back();
    const double limit_mb = plan.buckets.size() == 1 ? spec_.first_bucket_mb : spec_.bucket_mb;
    return static_cast<double>((last.end - last.begin) * element_bytes_) >= limit_mb * (1 << 20);
  }

  const SyncSpec& spec_;
  int64_t element_bytes_;
};

}  // namespace

BucketPlan bucket_plan(const ParamStore& store, const SyncSpec& spec) {
  BucketBuilder builder(spec, store.flat_grads().element_size());
  const auto& params = store.params();
  for (auto param = params.rbegin(); param != params.rend(); ++param) {
    builder.add(param->name, param->offset, param->offset + aligned(param->num_elements()));
  }
  for (auto param = params.rbegin(); param != params.rend(); ++param) {
    for (const UseGrad& use : param->use_grads) {
      const int64_t begin = use.slice.storage_offset() - store.flat_grads().storage_offset();
      if (begin != param->offset) builder.add(param->name, begin, begin + aligned(param->num_elements()));
    }
  }
  return std::move(builder.plan);
}

BucketedAllReduce::BucketedAllReduce(const SyncSpec& spec, ParamStore& store, ReplicaGroups groups)
    : store_(store), groups_(groups), plan_(bucket_plan(store, spec)) {
  for (const auto& bucket : plan_.buckets) missing_.push_back(bucket.num_params);
  works_.resize(plan_.buckets.size());
}

void BucketedAllReduce::ready(const Parameter& param) {
  check(ready_.insert(param.name).second, "a parameter is ready once per step");
  for (const int bucket : plan_.of_param.at(param.name)) --missing_[bucket];
  while (next_ < missing_.size() && missing_[next_] == 0) launch(next_++);
}

void BucketedAllReduce::flush() {
  check(ready_.size() == plan_.of_param.size(), "every parameter is ready when a stage's backward is over");
}

void BucketedAllReduce::launch(size_t index) {
  const auto& bucket = plan_.buckets[index];
  const auto slice = store_.flat_grads().narrow(0, bucket.begin, bucket.end - bucket.begin);
  works_[index] = groups_.data.all_reduce(slice, ReduceOp::Sum);
  bytes_sent_ += ring_bytes(slice, groups_.data.size());
}

void BucketedAllReduce::finish() {
  flush();
  for (Work& work : works_) {
    work.order_before(groups_.data.queue());
    work = Work();
  }
  add_tied_uses();
  ready_.clear();
  next_ = 0;
  for (size_t b = 0; b < plan_.buckets.size(); ++b) missing_[b] = plan_.buckets[b].num_params;
}

// use 0 + use 1, whether both are on this rank or one on either end of the pipeline: the same two operands, so the same
// bits.
void BucketedAllReduce::add_tied_uses() {
  for (Parameter& param : store_.params()) {
    if (param.uses == 1) continue;
    if (static_cast<int>(param.local_uses.size()) < param.uses) {
      groups_.tied.all_reduce(param.main_grad, ReduceOp::Sum).order_before(groups_.tied.queue());
      bytes_sent_ += ring_bytes(param.main_grad, groups_.tied.size());
      continue;
    }
    for (size_t use = 1; use < param.use_grads.size(); ++use) {
      auto slice = param.use_grads[use].slice;
      if (slice.data_ptr() != param.main_grad.data_ptr()) param.main_grad.add_(slice);
    }
  }
}

}  // namespace braid
