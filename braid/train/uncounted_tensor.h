// Tensors for measurements. On CPUs their memory is their own, past the accounting allocator: a measurement must not
// show up in the peaks of the run.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::train {

// Contiguous, with arbitrary values.
at::Tensor uncounted_tensor(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device);

// Until a device that works behind the host's back is done with what `tensor` is computed by.
void wait_for(const at::Tensor& tensor);

}  // namespace braid::train
