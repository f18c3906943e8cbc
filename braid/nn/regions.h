// Conjugate autograd regions: how a tensor enters and leaves the part of the model that is split over a group.
//
//                 forward             backward
//   copy_to       identity            all-reduce     replicated -> each rank its own use   (Megatron's f)
//   reduce_from   all-reduce          identity       partial sums -> replicated            (Megatron's g)
//   scatter_to    own slice           all-gather     replicated -> split along the last dim
//   gather_from   all-gather          own slice      split along the last dim -> replicated
//
// Sums are over the group, in the Communicator's fixed order. All ranks of the group call the same regions in the same
// order, and their backwards run in the same order. They throw CommError.
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/communicator.h"

namespace braid::nn {

at::Tensor copy_to(const at::Tensor& x, Communicator& group);
at::Tensor reduce_from(const at::Tensor& x, Communicator& group);
// Reduces into `x` itself, which must be contiguous and which nothing has saved for backward (autograd complains if
// so).
at::Tensor reduce_from_(const at::Tensor& x, Communicator& group);
// The last dim is divisible by the group's size.
at::Tensor scatter_to(const at::Tensor& x, Communicator& group);
at::Tensor gather_from(const at::Tensor& x, Communicator& group);

// In place; what the caller enqueues on the group's queue afterwards sees the result. `x` is contiguous.
void all_reduce_(const at::Tensor& x, ReduceOp op, Communicator& group);

}  // namespace braid::nn
