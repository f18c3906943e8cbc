// Inner graphs of autograd.
#include "braid/module/inner_graph.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "braid/base/text.h"

namespace braid::modules {

size_t index_of(const at::Tensor& tensor, const Tensors& tensors) {
  const auto found = std::ranges::find_if(tensors, [&](const at::Tensor& each) { return each.is_same(tensor); });
  return static_cast<size_t>(found - tensors.begin());
}

Tensors leaves_of(const Tensors& inputs, const std::vector<bool>& differentiable) {
  Tensors leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t first = index_of(inputs[i], inputs);
    leaves.push_back(first < i ? leaves[first] : inputs[i].detach().requires_grad_(differentiable[i]));
  }
  return leaves;
}

at::Tensor non_view(const at::Tensor& tensor) {
  at::Tensor same = tensor.tensor_data();
  same.unsafeGetTensorImpl()->set_allow_tensor_metadata_change(true);
  return same;
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CallHolder : torch::CustomClassHolder {
  explicit CallHolder(std::function<void()> the_call) : call(std::move(the_call)) {}
  std::function<void()> call;
};

// One autograd node for all tensors. They are given as a TensorList, because Function::apply does not find the tensors
// of a vector.
struct AliasNode : torch::autograd::Function<AliasNode> {
  static variable_list forward(AutogradContext* ctx, at::TensorList tensors, c10::intrusive_ptr<CallHolder> holder) {
    ctx->saved_data["call"] = c10::IValue::make_capsule(std::move(holder));
    variable_list aliases;
    for (const at::Tensor& tensor : tensors) aliases.push_back(non_view(tensor));
    return aliases;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto capsule = ctx->saved_data["call"].toCapsule();
    c10::static_intrusive_pointer_cast<CallHolder>(capsule)->call();
    gradients.emplace_back();  // the holder has no gradient
    return gradients;
  }
};

}  // namespace

Tensors writable_aliases(const Tensors& leaves, std::function<void()> on_backward) {
  Tensors differentiable;  // each once
  for (const at::Tensor& leaf : leaves) {
    if (leaf.requires_grad() && index_of(leaf, differentiable) == differentiable.size()) differentiable.push_back(leaf);
  }
  const Tensors aliases =
      AliasNode::apply(at::TensorList(differentiable), c10::make_intrusive<CallHolder>(std::move(on_backward)));
  Tensors all = leaves;
  for (at::Tensor& each : all) {
    const size_t place = index_of(each, differentiable);
    if (place < aliases.size()) each = aliases[place];
  }
  return all;
}

// Edges are kept, because a leaf's node lives only as long as an edge leads to it, and nodes are compared by address.
std::string lost_gradient(const Tensors& outputs, const Tensors& ends, uint64_t first_node) {
  std::vector<torch::autograd::Edge> known;
  std::set<const torch::autograd::Node*> seen;
  for (const at::Tensor& end : ends) {
    known.push_back(torch::autograd::impl::gradient_edge(end));
    seen.insert(known.back().function.get());
  }
  std::vector<torch::autograd::Edge> ahead;
  const auto visit = [&](const torch::autograd::Edge& edge) {
    if (edge.is_valid() && seen.insert(edge.function.get()).second) ahead.push_back(edge);
  };
  for (const at::Tensor& output : outputs) visit(torch::autograd::impl::gradient_edge(output));
  while (!ahead.empty()) {
    const auto node = std::move(ahead.back().function);
    ahead.pop_back();
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get())) {
      return cat("a leaf of ", leaf->variable.sizes());
    }
    if (node->sequence_nr() < first_node) return cat("a result of ", node->name());
    for (const auto& edge : node->next_edges()) visit(edge);
  }
  return "";
}

SavedTensorsInMemory::SavedTensorsInMemory() : graph_(nullptr, [](const c10::Storage&) { return false; }) {
  if (param::SavedGraph::moves_here()) scope_.emplace(graph_);
}

WithoutHooks::WithoutHooks(const Tensors& parameters) : parameters_(parameters) {
  for (const at::Tensor& each : parameters_) {
    hooks_.emplace_back();
    hooks_.back().swap(torch::autograd::impl::hooks(each));
  }
}

WithoutHooks::~WithoutHooks() {
  for (size_t i = 0; i < hooks_.size(); ++i) hooks_[i].swap(torch::autograd::impl::hooks(parameters_[i]));
}

}  // namespace braid::modules
