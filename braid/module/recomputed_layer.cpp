// Activation recomputation with one autograd node for each forward of a layer. Its inputs are the layer's inputs and
// its trained parameters, so a layer whose inputs need no gradient is trained too. Backward differentiates the second
// forward by torch::autograd::grad(). So the outer graph adds to .grad, and calls hooks of parameters, once for each
// backward.
#include "braid/module/recomputed_layer.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "braid/module/layer_facts.h"
#include "braid/module/recomputed_run.h"

namespace braid::modules {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RecomputedNode : torch::autograd::Function<RecomputedNode> {
  static variable_list forward(AutogradContext* ctx, at::TensorList inputs, at::TensorList /*trained*/,
                               c10::intrusive_ptr<RecomputedRun> run) {
    ctx->save_for_backward(inputs.vec());
    ctx->set_materialize_grads(false);  // zeros are not the same as no gradient: 0 x infinity
    variable_list computed = run->take_computed();
    ctx->saved_data["run"] = c10::IValue::make_capsule(std::move(run));
    return computed;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto run = c10::static_intrusive_pointer_cast<RecomputedRun>(ctx->saved_data["run"].toCapsule());
    if (c10::GradMode::is_enabled()) throw run->refusal("has no second derivative (create_graph)");
    run->require_unwritten();
    variable_list found = run->gradients(ctx->get_saved_variables(), gradients);
    found.emplace_back();  // the run has no gradient
    return found;
  }
};

bool any_requires_grad(const Tensors& tensors) {
  return std::ranges::any_of(tensors, [](const at::Tensor& each) { return each.requires_grad(); });
}

}  // namespace

Tensors run_layer(const Layer& layer, const Tensors& inputs, const LayerContext& context) {
  if (layer.options.activations == Activations::Kept || !c10::GradMode::is_enabled()) return layer.forward(inputs);
  Tensors trained = parameters(layer);
  std::erase_if(trained, [](const at::Tensor& each) { return !each.requires_grad(); });
  if (trained.empty() && !any_requires_grad(inputs)) return layer.forward(inputs);
  const auto run = c10::make_intrusive<RecomputedRun>(layer, inputs, trained, context);
  run->run(layer, inputs);
  if (!run->has_computed_outputs()) return run->take_outputs({});
  return run->take_outputs(RecomputedNode::apply(at::TensorList(inputs), at::TensorList(trained), run));
}

}  // namespace braid::modules
