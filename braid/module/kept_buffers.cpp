// Copies, and copies back.
#include "braid/module/kept_buffers.h"

#include <c10/core/GradMode.h>

#include <utility>

namespace braid::modules {

KeptBuffers::KeptBuffers(Tensors buffers) : buffers_(std::move(buffers)) {
  for (const at::Tensor& buffer : buffers_) kept_.push_back(buffer.detach().clone());
}

KeptBuffers::~KeptBuffers() {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(kept_[i]);
}

}  // namespace braid::modules
