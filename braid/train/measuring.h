// Tensors for measurements, and numbers combined over ranks. On CPUs their memory is their own, past the accounting
// allocator: a measurement must not show up in the peaks of the run.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/communicator.h"

namespace braid::train {

// One number of each rank, combined over all of them.

// The same on all ranks. Blocks. Collective.
double all_reduced(double value, ReduceOp op, Communicator& ranks);

// Contiguous, with arbitrary values.
at::Tensor uncounted_tensor(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device);

// Until a device that works behind the host's back is done with what `tensor` is computed by.
void wait_for(const at::Tensor& tensor);

}  // namespace braid::train
