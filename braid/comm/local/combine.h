// Combines equal ranges of several buffers elementwise, in the fixed order of communicator.h, by plain loops on raw
// memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "braid/comm/communicator.h"

namespace braid::comm::local {

struct CombineCall {
  std::span<const void* const> inputs;  // at least one buffer
  int64_t input_begin;                  // first element, the same in all inputs
  std::span<void* const> outputs;       // each receives the result; they may be the inputs themselves
  int64_t output_begin;
  int64_t count;
};

using Combine = void (*)(const CombineCall&);

// Returns the function for elements of `type`, or null. float32, float64, bfloat16, float16 and int64 can be combined.
// Maximum and minimum are NaN if any input is NaN; int64 sums wrap.
Combine combine_of(at::ScalarType type, ReduceOp op);

// Returns the type of a combination that is combined further: float32 for sums of 16 bits, which are rounded once.
at::ScalarType partial_type(at::ScalarType type, ReduceOp op);

// Returns the function that combines inputs of `type` into outputs of partial_type(type, op).
Combine combine_to_partial(at::ScalarType type, ReduceOp op);
// Returns the function that combines inputs of partial_type(type, op) into outputs of `type`.
Combine combine_partials(at::ScalarType type, ReduceOp op);

}  // namespace braid::comm::local
