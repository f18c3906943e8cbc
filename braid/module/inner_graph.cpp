// Inner graphs of autograd.
#include "braid/module/inner_graph.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "braid/base/text.h"
#include "braid/module/synced_modules.h"

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

Tensors writable_aliases(const Tensors& leaves, std::function<void()> on_backward) {
  Tensors same = with_call_in_backward(leaves, std::make_shared<const std::function<void()>>(std::move(on_backward)));
  for (size_t i = 0; i < leaves.size(); ++i) same[i] = same[index_of(leaves[i], leaves)];
  return same;
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
