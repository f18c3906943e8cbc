// Tensors whose memory comes and goes while views of them stay: what autograd saved of a parameter sees the values
// again that are gathered for its backward. It knows no parameters.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

// `tensor` owns its storage, which lies on the host. Without memory it and its views have shapes and no data: whoever
// reads them fails. Both do nothing when it is so already.
void release_memory(const at::Tensor& tensor);
// Uninitialised.
void restore_memory(const at::Tensor& tensor);

}  // namespace braid
