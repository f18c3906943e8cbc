// Conjugate autograd regions: operations by which a tensor enters and leaves the part of the model that is split over a
// group.
//
//                  forward       backward
//   copy_to        identity      all-reduce    replicated -> each rank its own use   (Megatron's f)
//   reduce_from_   all-reduce    identity      partial sums -> replicated            (Megatron's g)
//
// Sums are over the group, in the Communicator's fixed order. All ranks of the group must call the same regions in the
// same order, and run their backwards in the same order. All functions throw CommError.
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"
#include "braid/param/weight_grad_queue.h"

namespace braid::nn {

// The state that a region keeps from forward for its backward: the group, and the name of the calls of backward.
struct Region {
  Communicator* group;
  comm::OpName name = comm::CallName::current().backward();
};

// The state of a region whose backward sums: also the type of its input, and the queue whose deferred weight gradients
// run while the sum travels. Null: there is none.
struct CopyRegion {
  Region region;
  at::ScalarType type;
  param::WeightGradQueue* weight_grads;
};

// Orders the group's queue after a sum of backward that has started. First runs the weight gradients that were deferred
// until then.
void finish_sum(Work sum, const CopyRegion& copy);

// Returns x in type `sums`; in a group of one rank, x itself. The gradients are summed in that type and then rounded to
// the type of x. Weight gradients that `weight_grads` has deferred run while the gradients' sum travels; null: there
// are none.
at::Tensor copy_to(const at::Tensor& x, Communicator& group, at::ScalarType sums,
                   param::WeightGradQueue* weight_grads = nullptr);
// Reduces into `x` itself. REQUIRES: `x` is contiguous and no backward has saved it; autograd throws otherwise.
at::Tensor reduce_from_(const at::Tensor& x, Communicator& group);

// Reduces `x` in place. Work that the caller enqueues on the group's queue afterwards sees the result. REQUIRES: `x` is
// contiguous.
void all_reduce_(const at::Tensor& x, ReduceOp op, Communicator& group);

}  // namespace braid::nn
