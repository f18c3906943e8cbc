// Typed values that the forward of a custom Function keeps for its backward. Inputs and outputs of the Function go
// through save_for_backward instead, which detects later writes to them.
#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <utility>

namespace braid::nn {

template <class T>
struct Kept : torch::CustomClassHolder {
  explicit Kept(T v) : value(std::move(v)) {}
  T value;
};

// A tensor that a function keeps until backward calls it. Autograd saves it like the tensors of save_for_backward, so
// it moves to disk where they do (param/saved_graph.h).
class SavedTensor {
 public:
  explicit SavedTensor(const at::Tensor& tensor)
      : saved_(std::make_shared<const torch::autograd::SavedVariable>(tensor.defined() ? tensor.detach() : tensor,
                                                                      /*is_output=*/false)) {}
  // Returns the tensor without a graph.
  at::Tensor tensor() const { return saved_->unpack(); }

 private:
  std::shared_ptr<const torch::autograd::SavedVariable> saved_;
};

// Keeps `value` for kept(). One value per Function.
template <class T>
void keep(torch::autograd::AutogradContext* ctx, T value) {
  ctx->saved_data["kept"] = c10::IValue::make_capsule(c10::make_intrusive<Kept<T>>(std::move(value)));
}

// Returns the value given to keep(), which had the same T. It lives as long as the graph node.
template <class T>
T& kept(torch::autograd::AutogradContext* ctx) {
  return static_cast<Kept<T>*>(ctx->saved_data["kept"].toCapsule().get())->value;
}

}  // namespace braid::nn
