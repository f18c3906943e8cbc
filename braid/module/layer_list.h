// A model as a list of layers: torch modules, and functions of tensors. stage_plan.h cuts the list into stages.
//
//   LayerList layers;
//   layers.add("conv", torch::nn::Conv2d(3, 8, 3)).add("relu", torch::nn::ReLU()).add(torch::nn::Sequential(...));
//   layers.add("join", [](at::Tensor x, at::Tensor skip) { return x + skip; }, {.pop = {"skip"}});
//
// A layer may keep tensors for a later one, past the layers and stages between them. torchgpipe calls this stash and
// pop (Kim et al., 2020, section 3.2). A layer with .stash = {"a", "b"} returns its outputs followed by a and b, which
// the next layer does not get. A layer with .pop = {"a"} gets its inputs followed by a. Every name is stashed once, and
// popped once by a later layer.
//
// The list and its copies share the modules with the caller.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/module/layer_options.h"

namespace torch::nn {
class Module;
class AnyModule;
class SequentialImpl;
}  // namespace torch::nn

namespace braid {

struct Layer {
  std::string name;
  std::function<Tensors(const Tensors&)> forward;
  std::shared_ptr<torch::nn::Module> module;  // null: a function
  LayerOptions options = {};
  // True while a pipeline runs the layer (LayerClaim, stage_plan.h).
  std::shared_ptr<std::atomic<bool>> claimed = std::make_shared<std::atomic<bool>>(false);
};

class LayerList {
 public:
  // Adds a module holder (torch::nn::Linear(2, 3)), a shared pointer to a module, an AnyModule, or a function. Its
  // forward takes and returns tensors, as layer_call.h describes. The forward of an AnyModule takes one to four
  // tensors, and returns a tensor, a list, or a tuple of up to four. A Sequential becomes one layer, which cannot be
  // cut.
  template <class L>
  LayerList& add(std::string name, L layer, LayerOptions options = {}) {
    return push(std::move(name), made(std::move(layer)), std::move(options));
  }
  // Adds a layer that is named by its number. A Sequential adds each of its modules as a layer, under the module's name
  // in it and with options.activations.
  template <class L>
  requires(!std::is_convertible_v<L, std::string>) LayerList& add(L layer, LayerOptions options = {}) {
    if constexpr (requires { typename L::ContainedType; }) {
      if constexpr (std::is_same_v<typename L::ContainedType, torch::nn::SequentialImpl>)
        return add_each(layer.ptr(), options.activations);
    }
    return add(std::to_string(layers_.size()), std::move(layer), std::move(options));
  }
  // Adds a layer that returns its inputs and stashes the first of them.
  LayerList& stash(const std::string& name);

  // Returns a list of the layers with these numbers. It shares their modules, as a copy of the list does.
  LayerList subset(const std::vector<int>& numbers) const;

  int size() const { return static_cast<int>(layers_.size()); }
  const Layer& operator[](int index) const { return layers_[index]; }
  // Replaces the module of a layer. The layer keeps its name and options.
  template <class L>
  void replace(int index, L layer) {
    Layer next = made(std::move(layer));
    layers_[index].forward = std::move(next.forward);
    layers_[index].module = std::move(next.module);
  }

 private:
  using ModulePtr = std::shared_ptr<torch::nn::Module>;

  template <class L>
  static Layer made(L layer) {
    if constexpr (std::is_same_v<L, torch::nn::AnyModule>) {
      return of_any(std::move(layer));
    } else if constexpr (requires { typename L::ContainedType; }) {
      return of_pointer(layer.ptr());
    } else if constexpr (std::is_convertible_v<L, ModulePtr>) {
      return of_pointer(std::move(layer));
    } else {
      const auto call = [layer](const Tensors& tensors) mutable { return layer_call::call(layer, tensors); };
      return {.forward = call, .module = nullptr};
    }
  }
  template <class Module>
  static Layer of_pointer(std::shared_ptr<Module> module) {
    if constexpr (std::is_same_v<Module, torch::nn::SequentialImpl>) {
      return of_sequential(std::move(module));
    } else {
      const layer_call::ModuleForward<Module> forward{module};
      const auto call = [forward](const Tensors& tensors) { return layer_call::call(forward, tensors); };
      return {.forward = call, .module = std::move(module)};
    }
  }
  static Layer of_any(torch::nn::AnyModule module);
  static Layer of_sequential(std::shared_ptr<torch::nn::SequentialImpl> sequential);
  LayerList& add_each(std::shared_ptr<torch::nn::SequentialImpl> sequential, Activations activations);
  LayerList& push(std::string name, Layer layer, LayerOptions options);

  std::vector<Layer> layers_;
};

// Returns a problem for each layer that has the name of an earlier one.
std::vector<Problem> name_problems(const LayerList& layers);

}  // namespace braid
