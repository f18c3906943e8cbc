// One autograd node for all tensors of an edge. (Function::apply sees the tensors of a TensorList, not those of a
// vector.)
#include "braid/module/gather_edges.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CallHolder : torch::CustomClassHolder {
  explicit CallHolder(std::shared_ptr<const std::function<void()>> the_call) : call(std::move(the_call)) {}
  std::shared_ptr<const std::function<void()>> call;
};

struct Edge : torch::autograd::Function<Edge> {
  static variable_list forward(AutogradContext* ctx, at::TensorList tensors, c10::intrusive_ptr<CallHolder> holder) {
    ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(holder));
    variable_list views;
    for (const at::Tensor& tensor : tensors) views.push_back(tensor.view(tensor.sizes()));
    return views;
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

}  // namespace braid
