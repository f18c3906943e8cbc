// Runs the layers of a stage. Skip tensors are in a map meanwhile: layers stash and pop them, and the rest is passed on
// to the next stage.
#include "braid/module/layer_stage.h"

#include <map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/layer_errors.h"
#include "braid/module/layer_facts.h"
#include "braid/module/recomputed_layer.h"

namespace braid::modules {
namespace {

using Aside = std::map<std::string, at::Tensor>;

// Moves the last tensors of `flow` into `kept`, under `names`.
void put_aside(const std::vector<std::string>& names, Tensors& flow, Aside& kept) {
  check(flow.size() >= names.size(), "there is a tensor for every name");
  const size_t first = flow.size() - names.size();
  for (size_t i = 0; i < names.size(); ++i) kept[names[i]] = std::move(flow[first + i]);
  flow.resize(first);
}

void bring_back(const std::vector<std::string>& names, Tensors& flow, Aside& kept) {
  for (const auto& name : names) {
    auto tensor = kept.extract(name);
    check(!tensor.empty(), "what is popped was stashed or carried in");
    flow.push_back(std::move(tensor.mapped()));
  }
}

}  // namespace

LayerStage::LayerStage(const LayerList& layers, StagePlan plan, int number, RankKind ranks)
    : layers_(layers),
      plan_(std::move(plan)),
      number_(number),
      ranks_(ranks),
      listeners_(layers, plan_.first, plan_.last) {}

Tensors LayerStage::forward(const Tensors& inputs, ForwardPurpose purpose) const {
  const bool watch = purpose == ForwardPurpose::ShapeTrace && ranks_ == RankKind::Thread;
  Tensors flow = inputs;
  Aside kept;
  put_aside(plan_.carried_in, flow, kept);
  for (int index = plan_.first; index < plan_.last; ++index) {
    const Layer& layer = layers_[index];
    bring_back(layer.options.pop, flow, kept);
    flow = watch ? watched(index, flow) : run(index, flow);
    put_aside(layer.options.stash, flow, kept);
  }
  bring_back(plan_.carried_out, flow, kept);
  return flow;
}

void LayerStage::run_by(GatheredLayers& gathered, int first_gathered) {
  gathered_ = &gathered;
  first_gathered_ = first_gathered;
}

Tensors LayerStage::run(int index, const Tensors& inputs) const {
  const auto forward = [&](const Tensors& given) { return call(layers_[index], given); };
  return gathered_ ? gathered_->run(first_gathered_ + index - plan_.first, inputs, forward) : forward(inputs);
}

Tensors LayerStage::call(const Layer& layer, const Tensors& inputs) const {
  const std::string where = cat("layer ", layer.name, " of stage ", number_);
  const LayerContext context{where, ranks_ == RankKind::Thread ? ProcessGenerator::Shared : ProcessGenerator::Own};
  Tensors outputs = with_layer_name(where, [&] { return run_layer(layer, inputs, context); });
  if (outputs.size() < layer.options.stash.size()) {
    throw ConfigError({{.key = cat(where, ": stash"),
                        .value = joined(layer.options.stash),
                        .rule = cat("needs one tensor each, and the layer gave ", outputs.size())}});
  }
  for (const at::Tensor& output : outputs) {
    if (!output.defined()) throw RunError(cat(where, ": gave an undefined tensor"));
  }
  return outputs;
}

Tensors LayerStage::watched(int index, const Tensors& inputs) const {
  const RandomDrawWatch watch;
  Tensors outputs = run(index, inputs);
  const auto drawing = watch.operations();
  if (drawing.empty()) return outputs;
  throw ConfigError({drawing_problem(layers_[index], joined(drawing))});
}

Tensors LayerStage::parameters() const {
  Tensors all;
  for (int index = plan_.first; index < plan_.last; ++index) {
    for (auto& tensor : braid::modules::parameters(layers_[index])) all.push_back(std::move(tensor));
  }
  return all;
}

Tensors LayerStage::buffers() const {
  Tensors all;
  for (int index = plan_.first; index < plan_.last; ++index) {
    for (auto& tensor : braid::modules::buffers(layers_[index])) all.push_back(std::move(tensor));
  }
  return all;
}

}  // namespace braid::modules
