// One autograd node for all tensors of an edge. (Function::apply sees the tensors of a TensorList, not those of a
// vector.)
#include "braid/module/gather_edges.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace braid::modules {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CallHolder : torch::CustomClassHolder {
  explicit CallHolder(std::shared_ptr<const std::function<void()>> the_call) : call(std::move(the_call)) {}
  std::shared_ptr<const std::function<void()>> call;
};

// Returns a tensor of the same memory that is no view for autograd, so that later layers may write it in place.
at::Tensor non_view(const at::Tensor& tensor) {
  at::Tensor same = tensor.tensor_data();
  same.unsafeGetTensorImpl()->set_allow_tensor_metadata_change(true);
  return same;
}

struct Edge : torch::autograd::Function<Edge> {
  static variable_list forward(AutogradContext* ctx, at::TensorList tensors, c10::intrusive_ptr<CallHolder> holder) {
    ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(holder));
    variable_list aliases;
    for (const at::Tensor& tensor : tensors) aliases.push_back(non_view(tensor));
    return aliases;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto capsule = ctx->saved_data["call"].toCapsule();
    (*c10::static_intrusive_pointer_cast<CallHolder>(capsule)->call)();
    gradients.emplace_back();  // of the holder
    return gradients;
  }
};

}  // namespace

Tensors with_call_in_backward(const Tensors& tensors, std::shared_ptr<const std::function<void()>> call) {
  return Edge::apply(at::TensorList(tensors), c10::make_intrusive<CallHolder>(std::move(call)));
}

}  // namespace braid::modules
