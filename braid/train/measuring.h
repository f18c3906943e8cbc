// Tensors for measurements. On CPUs they bypass the accounting allocator, since a measurement must not raise the run's
// peaks of memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "braid/comm/communicator.h"

namespace braid::train {

// Returns a contiguous tensor with arbitrary values. Throws MemoryError if memory.limit_gb leaves no space for it.
at::Tensor uncounted_tensor(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device);

// Returns true if a measurement may take `bytes` on each rank: memory.limit_gb leaves them, and all ranks together take
// at most half of the memory that each host has available. Collective.
bool has_memory_for(int64_t bytes, Communicator& ranks);

// Blocks until an asynchronous device has computed `tensor`. Returns at once on the CPU.
void wait_for(const at::Tensor& tensor);

}  // namespace braid::train
