// PlainReducer: the all-reduce of gradients without compression.
#include "braid/sync/grad_reducer.h"

#include <utility>

#include "braid/sync/ring_bytes.h"

namespace braid::sync {

void PlainReducer::plan(const GradLayout& layout) { works_.assign(layout.buckets.size(), Work()); }

void PlainReducer::start(int bucket, const at::Tensor& grads) {
  works_[bucket] = group_.all_reduce(grads, ReduceOp::Sum);
  bytes_sent_ += all_reduce_bytes(grads, group_.size());
}

void PlainReducer::finish(int bucket) { std::exchange(works_[bucket], Work()).order_before(group_.queue()); }

}  // namespace braid::sync
