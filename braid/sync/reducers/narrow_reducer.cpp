// Reduces gradients in 16 bits. bfloat16 has float32's range, so LibTorch rounds to it. float16 is clamped and rounded
// in one pass.
#include "braid/sync/reducers/narrow_reducer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "braid/param/memory_account.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {
namespace {

constexpr float kLargest = 65504;  // the largest float16
constexpr int64_t kCastGrain = 1 << 15;

template <class T>
void saturate(const at::Tensor& from, const at::Tensor& to, T limit) {
  const T* in = from.const_data_ptr<T>();
  auto* out = static_cast<_Float16*>(to.mutable_data_ptr());
  at::parallel_for(0, from.numel(), kCastGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T x = in[i];
      const bool finite = x - x == 0;
      out[i] = static_cast<_Float16>(finite ? std::min(std::max(x, -limit), limit) : x);
    }
  });
}

}  // namespace

float float16_limit(int ranks) {
  auto limit = static_cast<_Float16>(kLargest / static_cast<float>(ranks));
  if (static_cast<float>(limit) * static_cast<float>(ranks) > kLargest) {
    limit = std::bit_cast<_Float16>(static_cast<uint16_t>(std::bit_cast<uint16_t>(limit) - 1));
  }
  return static_cast<float>(limit);
}

void NarrowReducer::plan(const GradLayout& layout) {
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  const auto options = layout.options.dtype(wire_ == WireType::BFloat16 ? at::kBFloat16 : at::kHalf);
  flights_.clear();
  for (const BucketShape& bucket : layout.buckets) {
    flights_.push_back({at::empty({bucket.end - bucket.begin}, options), {}, Work()});
  }
}

void NarrowReducer::start(int bucket, const at::Tensor& grads) {
  Flight& flight = flights_[bucket];
  flight.grads = grads;
  if (wire_ == WireType::BFloat16) {
    flight.wire.copy_(grads);
  } else if (grads.scalar_type() == at::kDouble) {
    saturate<double>(grads, flight.wire, float16_limit(group_.size()));
  } else {
    saturate<float>(grads, flight.wire, float16_limit(group_.size()));
  }
  flight.work = group_.all_reduce(flight.wire, ReduceOp::Sum);
  bytes_sent_ += all_reduce_bytes(flight.wire, group_.size());
}

void NarrowReducer::finish(int bucket) {
  Flight& flight = flights_[bucket];
  flight.work.order_before(group_.queue());
  flight.grads.copy_(flight.wire);
  flight.work = Work();
  flight.grads.reset();
}

}  // namespace braid::sync
