// Launches the reduction of buckets in the order that all ranks agreed on.
#include "braid/sync/bucket_sums.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/mesh/flat_range.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {
namespace {

int64_t aligned(int64_t elements) {
  return (elements + param::ParamStore::kAlign - 1) / param::ParamStore::kAlign * param::ParamStore::kAlign;
}

class BucketBuilder {
 public:
  BucketBuilder(const SyncSpec& spec, int64_t element_bytes) : spec_(spec), element_bytes_(element_bytes) {}

  // REQUIRES: slices are added in descending order of their place in the flat buffer.
  void add(const param::Parameter& param, int64_t begin) {
    const int64_t end = begin + aligned(param.num_elements());
    if (plan.buckets.empty() || full() || plan.buckets.back().begin != end) plan.buckets.push_back({begin, end, {}});
    plan.buckets.back().begin = begin;
    const mesh::Index& shape = param.placement.local_shape;
    plan.buckets.back().slices.push_back({param.name, begin, shape, mesh::runs_of(param.placement.pieces, shape)});
    plan.of_param[param.name].push_back(static_cast<int>(plan.buckets.size()) - 1);
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

BucketPlan bucket_plan(const param::ParamStore& store, const SyncSpec& spec,
                       const std::function<bool(const param::Parameter& param)>& here) {
  BucketBuilder builder(spec, store.flat_grads().element_size());
  std::vector<const param::Parameter*> params;
  for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) {
    if (!here || here(*param)) params.push_back(&*param);
  }
  for (const param::Parameter* param : params) builder.add(*param, param->offset);
  for (const param::Parameter* param : params) {
    for (const param::UseGrad& use : param->use_grads) {
      const int64_t begin = use.slice.storage_offset() - store.flat_grads().storage_offset();
      if (begin != param->offset) builder.add(*param, begin);
    }
  }
  return std::move(builder.plan);
}

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
  taken_.assign(missing_.size(), 0);
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
  taken_[static_cast<size_t>(order_[next_])] = 1;
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
  names_.clear();
  for (const BucketShape& bucket : plan_.buckets) {
    names_.emplace_back(cat("gradient bucket ", names_.size(), ": ", bucket.slices.front().name));
  }
  reducer_->plan({store_.flat_grads().options(), plan_.buckets});
}

at::Tensor BucketSums::slice(int bucket) const {
  const BucketShape& shape = plan_.buckets[bucket];
  return store_.flat_grads().narrow(0, shape.begin, shape.end - shape.begin);
}

void BucketSums::launch_complete() {
  while (const auto bucket = order_.take()) {
    const comm::CallName name(names_[*bucket]);
    reducer_->start(*bucket, slice(*bucket));
  }
}

void BucketSums::launch_all() {
  check(order_.all_ready(), "every parameter is ready when a stage's backward is over");
  launch_complete();
}

void BucketSums::finish() {
  for (const int bucket : order_.order()) {
    const comm::CallName name(names_[bucket]);
    reducer_->advance(bucket);
  }
  for (const int bucket : order_.order()) reducer_->finish(bucket);
  if (!order_is_learnt_) learn_order();
  order_.begin_step();
}

// The buckets of a plan are in descending order, but for those of further uses at its end.
int64_t BucketSums::final_from() const {
  for (int bucket = 0; bucket < std::ssize(plan_.buckets); ++bucket) {
    if (!order_.was_taken(bucket) || !reducer_->is_final(bucket)) return plan_.buckets[bucket].end;
  }
  return 0;
}

// All ranks take rank 0's order. Its few bytes are broadcast once and are not gradients, so they are not counted.
void BucketSums::learn_order() {
  order_is_learnt_ = true;
  const auto& seen = order_.seen();
  if (group_.size() == 1 || seen.empty()) return;
  order_.follow(comm::broadcast(group_, "order of buckets", seen));
}

}  // namespace braid::sync
