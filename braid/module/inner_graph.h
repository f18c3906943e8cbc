// An autograd graph inside another: the forward of a layer that begins at leaves of its own, and is differentiated by
// itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/module/layer_call.h"
#include "braid/param/saved_graph.h"

namespace torch::autograd {
struct FunctionPreHook;
}

namespace braid::modules {

// Returns the index of the first of `tensors` that is the same as `tensor`; their number if there is none.
size_t index_of(const at::Tensor& tensor, const Tensors& tensors);

// Returns a tensor of the same memory and version counter that is no view for autograd, so that later layers may write
// it in place.
at::Tensor non_view(const at::Tensor& tensor);

// Returns the leaves of an inner graph, in the memory of `inputs` and with their version counters. differentiable[i]:
// the leaf requires a gradient. An input that is given twice has one leaf.
Tensors leaves_of(const Tensors& inputs, const std::vector<bool>& differentiable);
// Returns tensors in the memory of the leaves. Those of leaves that require a gradient follow them, and unlike leaves
// they may be written in place. A backward of the inner graph runs `on_backward` before it comes to these leaves.
Tensors writable_aliases(const Tensors& leaves, std::function<void()> on_backward);

// Returns the text of a tensor that would get no gradient from an inner graph: `outputs` depend on it, and it is
// neither one of `ends` nor computed from them. Returns "" if there is none. `first_node` is the sequence number of the
// graph's first node.
std::string lost_gradient(const Tensors& outputs, const Tensors& ends, uint64_t first_node);

// A scope in which what autograd saves stays in memory, because it is soon freed.
class SavedTensorsInMemory {
 public:
  SavedTensorsInMemory();

 private:
  param::SavedGraph graph_;
  std::optional<param::SavedGraph::Scope> scope_;
};

// A scope in which parameters have no hooks for their gradients. An inner graph's gradients are terms of those that the
// outer graph passes to the hooks.
class WithoutHooks {
 public:
  explicit WithoutHooks(const Tensors& parameters);
  ~WithoutHooks();
  WithoutHooks(const WithoutHooks&) = delete;

 private:
  const Tensors parameters_;
  std::vector<std::vector<std::unique_ptr<torch::autograd::FunctionPreHook>>> hooks_;
};

}  // namespace braid::modules
