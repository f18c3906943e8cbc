// Layers made of AnyModules, whose forward is known only at run time.
#include "braid/module/layer_list.h"

#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <map>
#include <optional>

#include "braid/base/text.h"

namespace braid {
namespace {

using torch::nn::AnyModule;
using torch::nn::AnyValue;
using T = at::Tensor;

template <class Result>
std::optional<Tensors> read_as(AnyValue& value) {
  if (Result* result = value.try_get<Result>()) return layer_call::as_tensors(std::move(*result));
  return std::nullopt;
}

Tensors unpacked(AnyValue value) {
  if (auto tensors = read_as<T>(value)) return *tensors;
  if (auto tensors = read_as<Tensors>(value)) return *tensors;
  if (auto tensors = read_as<std::tuple<T, T>>(value)) return *tensors;
  if (auto tensors = read_as<std::tuple<T, T, T>>(value)) return *tensors;
  if (auto tensors = read_as<std::tuple<T, T, T, T>>(value)) return *tensors;
  throw ConfigError({{.key = "forward",
                      .value = c10::demangle(value.type_info().name()),
                      .rule = "must give a tensor, a list of tensors or a tuple of up to four"}});
}

Tensors call_any(AnyModule& module, const Tensors& x) {
  switch (x.size()) {
    case 1:
      return unpacked(module.any_forward(T(x[0])));
    case 2:
      return unpacked(module.any_forward(T(x[0]), T(x[1])));
    case 3:
      return unpacked(module.any_forward(T(x[0]), T(x[1]), T(x[2])));
    case 4:
      return unpacked(module.any_forward(T(x[0]), T(x[1]), T(x[2]), T(x[3])));
    default:
      layer_call::refuse_count(x.size(), {1, 2, 3, 4});
  }
}

}  // namespace

void layer_call::refuse_count(size_t given, const std::vector<size_t>& taken) {
  std::vector<std::string> counts;
  for (const size_t count : taken) counts.push_back(std::to_string(count));
  throw ConfigError(
      {{.key = "forward", .value = cat(given, " tensors"), .rule = cat("takes ", joined(counts, " or "))}});
}

Layer LayerList::of_any(AnyModule module) {
  auto pointer = module.ptr();
  const auto call = [module](const Tensors& tensors) mutable { return call_any(module, tensors); };
  return {.forward = call, .module = std::move(pointer)};
}

// Calls the modules one by one. Sequential's own forward passes a tuple on as one value and takes no list.
Layer LayerList::of_sequential(std::shared_ptr<torch::nn::SequentialImpl> sequential) {
  const auto call = [sequential](const Tensors& tensors) {
    Tensors flow = tensors;
    for (AnyModule& module : *sequential) flow = call_any(module, flow);
    return flow;
  };
  return {.forward = call, .module = sequential};
}

LayerList& LayerList::add_each(std::shared_ptr<torch::nn::SequentialImpl> sequential, Activations activations) {
  const auto names = sequential->named_children().keys();
  for (size_t i = 0; i < names.size(); ++i) {
    push(names[i], of_any(*(sequential->begin() + i)), {.activations = activations});
  }
  return *this;
}

LayerList& LayerList::stash(const std::string& name) {
  const auto keep = [](const Tensors& tensors) {
    Tensors result = tensors;
    result.push_back(tensors.at(0));
    return result;
  };
  return add(cat("stash ", name), keep, {.stash = {name}});
}

LayerList LayerList::subset(const std::vector<int>& numbers) const {
  LayerList some;
  for (const int number : numbers) some.layers_.push_back(layers_.at(static_cast<size_t>(number)));
  return some;
}

LayerList& LayerList::push(std::string name, Layer layer, LayerOptions options) {
  layer.name = std::move(name);
  layer.options = std::move(options);
  layers_.push_back(std::move(layer));
  return *this;
}

std::vector<Problem> name_problems(const LayerList& layers) {
  std::vector<Problem> problems;
  std::map<std::string, int> seen;
  for (int index = 0; index < layers.size(); ++index) {
    const std::string& name = layers[index].name;
    const auto [first, fresh] = seen.try_emplace(name, index);
    if (fresh) continue;
    problems.push_back({cat("layers.", name), "", cat("is the name of layers ", first->second, " and ", index), ""});
  }
  return problems;
}

}  // namespace braid
