// Tensors whose memory is freed and allocated again while views of them exist. If autograd has saved a view of a
// sharded parameter, its backward uses the values that are gathered later.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace braid::param {

// Frees the memory of `tensor`; does nothing if it is already free. The tensor and its views, old and new, keep their
// shapes; reading or writing their data throws a c10::Error with the text `why`. REQUIRES: `tensor` owns its storage,
// which is on the host.
void release_memory(const at::Tensor& tensor, const std::string& why);
// Allocates the memory again, uninitialised; does nothing if `tensor` has memory. If that throws, the memory is still
// free.
void restore_memory(const at::Tensor& tensor);

}  // namespace braid::param
