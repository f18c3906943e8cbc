// Tensors for measurements, and numbers combined over ranks. On CPUs the tensors bypass the accounting allocator, since
// a measurement must not raise the run's peaks of memory.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/communicator.h"

namespace braid::train {

// Returns the numbers `value` of all ranks, combined by `op`; the same on all ranks. Blocks. Collective.
double all_reduced(double value, ReduceOp op, Communicator& ranks);

// Returns a contiguous tensor with arbitrary values.
at::Tensor uncounted_tensor(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device);

// Blocks until an asynchronous device has computed `tensor`. Returns at once on the CPU.
void wait_for(const at::Tensor& tensor);

}  // namespace braid::train
