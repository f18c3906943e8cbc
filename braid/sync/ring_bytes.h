// The bytes that ring collectives send.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::sync {

// Returns the bytes that a rank sends in an all-gather into `whole`, or a reduce-scatter of it: (n - 1) / n of its
// size. This is for the ring algorithm (Patarasuk & Yuan 2009), which is optimal.
inline int64_t one_way_bytes(const at::Tensor& whole, int ranks) {
  return static_cast<int64_t>(whole.nbytes()) * (ranks - 1) / ranks;
}

// Returns the bytes that a rank sends in an all-reduce, which is a reduce-scatter and an all-gather.
inline int64_t all_reduce_bytes(const at::Tensor& whole, int ranks) { return 2 * one_way_bytes(whole, ranks); }

}  // namespace braid::sync
