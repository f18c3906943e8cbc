// A layer's backward begins with a node of one of its outputs, where a hook acquires the layer. Autograd runs the nodes
// of a thread from the latest to the earliest, so the backward of all later layers has ended then, and they are
// released. Nodes of forwards on several threads have no such order, so a layer runs on one. Tensors pass
// through unchanged: later layers may write them in place, with all their views.
#include "braid/module/gathered_layers.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>

#include <memory>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/model_part.h"

namespace braid::modules {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

// Returns true if the backward that runs ends at the node, as torch::autograd::grad() does for a layer's output: it
// calls hooks there too, but the node does not run.
bool ends_at(Node* node) {
  const auto* const nodes = torch::autograd::get_current_graph_task_exec_info();
  if (!nodes || nodes->empty()) return false;
  const auto found = nodes->find(node);
  return found != nodes->end() && !found->second.needed_;
}

// A hook of `node`, which owns it.
struct LayerHook final : torch::autograd::FunctionPreHook {
  LayerHook(Node* the_node, std::function<void()> the_call) : node(the_node), call(std::move(the_call)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (!ends_at(node)) call();
    return gradients;
  }
  Node* node;
  std::function<void()> call;
};

// Returns the nodes of `outputs` that were made since `first_node`. If a view is written in place later, its backward
// continues at the node of its base.
std::set<Node*> nodes_of(const Tensors& outputs, uint64_t first_node) {
  std::set<Node*> nodes;
  const auto add = [&](const at::TensorBase& tensor) {
    Node* const node = tensor.grad_fn().get();
    if (node && node->sequence_nr() >= first_node) nodes.insert(node);
  };
  for (const at::Tensor& output : outputs) {
    if (!output.defined()) continue;
    add(output);
    if (output.is_view()) add(output._base());
  }
  return nodes;
}

ConfigError refused_backward(const char* value, const char* rule) {
  return ConfigError({{"backward", value, rule, ""}});
}

}  // namespace

void GatheredLayers::begin_forward() { pending_.insert(++forward_); }

Tensors GatheredLayers::run(int layer, const Tensors& inputs,
                            const std::function<Tensors(const Tensors&)>& forward) try {
  Tensors outputs, all;
  const uint64_t first_node = at::sequence_number::peek();
  {
    const WholeLayer whole(parameters_, layer);
    const AuxiliaryLossScope scope;
    outputs = all = forward(inputs);
    all.insert(all.end(), scope.weighted().begin(), scope.weighted().end());
  }
  const auto begin = [self = weak_from_this(), place = Place{forward_, layer}] {
    const auto layers = self.lock();
    if (!layers) throw refused_backward("of an earlier forward", "must be run while the model is there");
    layers->begin_layer(place);
  };
  const std::set<Node*> nodes = c10::GradMode::is_enabled() ? nodes_of(all, first_node) : std::set<Node*>();
  for (Node* const node : nodes) {
    auto& hooks = node->tensor_pre_hooks();  // the layer's own hooks come later, when it is whole
    hooks.insert(hooks.begin(), std::make_unique<LayerHook>(node, begin));
  }
  for (size_t i = outputs.size(); i < all.size(); ++i) contribute_auxiliary_loss(all[i]);
  return outputs;
} catch (...) {
  parameters_.drop_prefetched();
  throw;
}

void GatheredLayers::begin_backward() {
  release();
  at_.reset();
  begun_.clear();
  range_ = all_;
}

void GatheredLayers::begin_backward_of(int first, int last) {
  begin_backward();
  range_ = {first, last};
  start(forward_);
}

void GatheredLayers::start(int64_t forward) {
  at_ = Place{forward, range_.last};
  begun_.push_back(forward);
}

// Runs once for each output node of a layer. With create_graph autograd would go through the graph of the backward
// after the parameters are released.
void GatheredLayers::begin_layer(const Place& place) {
  if (c10::GradMode::is_enabled()) {
    throw refused_backward("create_graph",
                           "must not be used with sync.zero = 3 or parameters on disk: they are gathered for one "
                           "backward");
  }
  const bool is_earlier =  // the caller's own backward, such as torch::autograd::grad()
      at_ && (place.forward > at_->forward || (place.forward == at_->forward && place.layer > at_->layer));
  if (is_earlier) begin_backward();
  if (at_ && at_->forward != place.forward) end_forward();
  if (!at_) start(place.forward);
  go_to(place.layer);
}

// Moves down to `layer`. At each layer on the way, reports finished gradients and gathers parameters, as all ranks do.
void GatheredLayers::go_to(int layer) {
  while (at_->layer > layer) {
    release();
    const bool is_first_forward = pending_.empty() || at_->forward <= *pending_.begin();
    if (on_done_from && is_first_forward) on_done_from(at_->layer);
    parameters_.acquire(at_->layer - 1, param::Phase::Backward);
    held_ = --at_->layer;
  }
}

void GatheredLayers::end_forward() {
  go_to(range_.first);
  release();
  at_.reset();
}

void GatheredLayers::release() {
  if (held_) parameters_.release(*std::exchange(held_, std::nullopt), param::Phase::Backward);
}

// A loss that depends on no layer of this rank's only forward has run no hook. Other ranks gather for theirs.
void GatheredLayers::end_backward() {
  if (begun_.empty() && pending_.size() == 1) start(*pending_.begin());
  if (at_) end_forward();
  for (const int64_t forward : begun_) pending_.erase(forward);
}

void GatheredLayers::give_up() {
  release();
  at_.reset();
  parameters_.drop_prefetched();
}

}  // namespace braid::modules
