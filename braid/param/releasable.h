// Tensors whose memory is freed and allocated again while views of them stay, so that what autograd saved of a sharded
// parameter sees the values that are gathered for its backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace braid::param {

// `tensor` owns its storage, which lies on the host. Without memory it and its views, old and new, have shapes and no
// data: whoever reads or writes them gets a c10::Error that says `why`. release_memory() and restore_memory() do
// nothing when it is so already.
void release_memory(const at::Tensor& tensor, const std::string& why);
// Uninitialised.
void restore_memory(const at::Tensor& tensor);

}  // namespace braid::param
