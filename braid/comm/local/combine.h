// Combines equal stretches of several buffers elementwise, in the fixed order of communicator.h: plain loops on raw
// memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "braid/comm/communicator.h"

namespace braid::comm::local {

struct CombineCall {
  std::span<const void* const> inputs;  // at least one
  int64_t input_begin;                  // first element, the same in all inputs
  std::span<void* const> outputs;       // each receives the result; may be the inputs themselves
  int64_t output_begin;
  int64_t count;
};

using Combine = void (*)(const CombineCall&);

// The function for elements of `type`, or null: float32, float64, bfloat16, float16 and int64 can be combined.
// Maximum and minimum are NaN where any input is; int64 sums wrap.
Combine combine_of(at::ScalarType type, ReduceOp op);

}  // namespace braid::comm::local
