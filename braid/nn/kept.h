// Typed values that a custom Function's forward keeps for its backward.
// Not for the Function's inputs and outputs: these go through save_for_backward, which detects later writes to them.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace braid::nn {

template <class T>
struct Kept : torch::CustomClassHolder {
  explicit Kept(T v) : value(std::move(v)) {}
  T value;
};

// One value per Function.
template <class T>
void keep(torch::autograd::AutogradContext* ctx, T value) {
  ctx->saved_data["kept"] = c10::IValue::make_capsule(c10::make_intrusive<Kept<T>>(std::move(value)));
}

// Returns the value of keep(), with the same T; it lives as long as the graph node.
template <class T>
T& kept(torch::autograd::AutogradContext* ctx) {
  return static_cast<Kept<T>*>(ctx->saved_data["kept"].toCapsule().get())->value;
}

}  // namespace braid::nn
