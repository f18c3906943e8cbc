// The first forward builds a graph as well, and drops it. The graph shows which outputs need a gradient, and whether a
// gradient would be lost. And the forward has the bits of a kept layer: some operations choose other kernels without
// gradients (the folding of matmul, for instance).
#include "braid/module/recomputed_run.h"

#include <ATen/SequenceNumber.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/auxiliary_loss.h"
#include "braid/module/inner_graph.h"
#include "braid/module/layer_errors.h"
#include "braid/module/layer_facts.h"

namespace braid::modules {
namespace {

struct WithContributions {
  Tensors outputs;  // of the layer, followed by the auxiliary losses that it contributes
  size_t num_contributions = 0;
};

WithContributions run_collecting(const Layer& layer, const Tensors& inputs, const std::string& where) {
  const AuxiliaryLossScope auxiliary;
  WithContributions all{layer.forward(inputs), auxiliary.weighted().size()};
  all.outputs.insert(all.outputs.end(), auxiliary.weighted().begin(), auxiliary.weighted().end());
  for (const at::Tensor& output : all.outputs) {
    if (!output.defined()) throw RunError(cat(where, ": gave an undefined tensor"));
  }
  return all;
}

// Returns up to 256 numbers of a tensor, evenly spread, as float64.
at::Tensor sample_of(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return at::empty({0}, at::kDouble);
  const at::Tensor flat = tensor.detach().reshape({-1});
  return flat.slice(0, 0, flat.numel(), std::max<int64_t>(1, flat.numel() / 256)).to(at::kDouble, false, true);
}

// Returns true if the samples are equal up to rounding: other random numbers change many of them by more.
bool agree(const at::Tensor& first, const at::Tensor& second) {
  if (first.numel() == 0) return true;
  const double largest = first.abs().max().item<double>(), worst = first.sub(second).abs().max().item<double>();
  return !std::isfinite(largest) || worst <= largest / 16;
}

Tensors joined_lists(const Tensors& first, const Tensors& second) {
  Tensors all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

}  // namespace

RecomputedRun::RecomputedRun(const Layer& layer, const Tensors& inputs, Tensors trained, LayerContext context)
    : layer_(layer), context_(std::move(context)), trained_(std::move(trained)), state_(layer) {
  for (const at::Tensor& input : inputs) differentiable_.push_back(input.requires_grad());
}

ConfigError RecomputedRun::refusal(std::string rule) const {
  return ConfigError({{cat("layers.", layer_.name, ".activations"), "recomputed", std::move(rule), "kept"}});
}

void RecomputedRun::run(const Layer& layer, const Tensors& inputs) {
  const SavedTensorsInMemory saves;
  const WithoutCastCache casts;
  const uint64_t first_node = at::sequence_number::peek();
  const ConfigError side_result = refusal(
      "would lose the gradient of a tensor of its forward that is not an output: return it, or use "
      "contribute_auxiliary_loss()");
  const Tensors leaves = leaves_of(inputs, differentiable_);
  const Tensors given = writable_aliases(leaves, [side_result] { throw side_result; });
  unwritten_.add("input", inputs);
  unwritten_.add("parameter", parameters(layer));
  const Tensors outputs = watched_outputs(layer, given);
  const std::string written = unwritten_.written();
  if (!written.empty()) {
    throw refusal(cat("must be kept, because the layer writes its ", written,
                      " in place, and its second forward would read other values"));
  }
  unwritten_.add("buffer", state_.drop_unchanged());
  const std::string lost = lost_gradient(outputs, joined_lists(leaves, trained_), first_node);
  if (!lost.empty()) {
    throw refusal(cat("would lose the gradient of a tensor that is neither an input nor a parameter of the layer (",
                      lost, "): list it in LayerOptions::parameters, or pass it as an input"));
  }
  specs_ = specs_of(outputs);
  classify_outputs(outputs, inputs, given);
}

// On ranks that share the generator another thread may draw meanwhile, so draws are not looked for. A layer that draws
// there gives other numbers in the second forward.
Tensors RecomputedRun::watched_outputs(const Layer& layer, const Tensors& inputs) {
  std::optional<RandomDrawWatch> watch;
  if (context_.generator == ProcessGenerator::Own) watch.emplace();
  auto [outputs, num_contributions] = run_collecting(layer, inputs, context_.name);
  num_contributions_ = num_contributions;
  if (watch && !watch->operations().empty()) state_.set_generator(watch->state_before());
  return outputs;
}

// An output that is an input or a parameter is passed on as it is, and outputs that are one tensor stay one: later
// layers may write them in place. Other outputs that share memory must not be written, because each is an output of the
// node, and would not be a function of the write.
void RecomputedRun::classify_outputs(const Tensors& outputs, const Tensors& inputs, const Tensors& given) {
  outputs_ = outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    first_same_.push_back(index_of(outputs[i], outputs));
    const size_t input = index_of(outputs[i], given);
    if (input < given.size()) {
      outputs_[i] = inputs[input];
    } else if (first_same_[i] == i && outputs[i].requires_grad() && !outputs[i].is_leaf()) {
      const at::Tensor computed = non_view(outputs[i]);
      for (const at::Tensor& other : computed_) {
        if (other.is_alias_of(computed)) unwritten_.add("output", i, computed);
      }
      places_.push_back(i);
      samples_.push_back(sample_of(computed));
      computed_.push_back(computed);
      outputs_[i].reset();
    }
  }
}

Tensors RecomputedRun::take_outputs(const Tensors& computed) {
  for (size_t k = 0; k < computed.size(); ++k) outputs_[places_[k]] = computed[k];
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = outputs_[first_same_[i]];
  const size_t num_outputs = outputs_.size() - num_contributions_;
  for (size_t i = num_outputs; i < outputs_.size(); ++i) contribute_auxiliary_loss(outputs_[i]);
  outputs_.resize(num_outputs);
  return std::exchange(outputs_, {});
}

void RecomputedRun::require_unwritten() const {
  const std::string written = unwritten_.written();
  if (written.empty()) return;
  throw RunError(cat(context_.name, ": its ", written, " was written in place after its forward, which backward runs ",
                     "again, because its activations are recomputed"));
}

Tensors RecomputedRun::second_outputs(const Tensors& leaves) const {
  const std::string where = cat(context_.name, ", recomputed in backward");
  const Layer layer = layer_;
  Tensors outputs = with_layer_name(where, [&] { return run_collecting(layer, leaves, where).outputs; });
  const auto specs = specs_of(outputs);
  if (specs != specs_) throw RunError(cat(where, ": gave ", text(specs), ", and ", text(specs_), " in forward"));
  for (size_t k = 0; k < places_.size(); ++k) {
    if (agree(samples_[k], sample_of(outputs[places_[k]]))) continue;
    throw RunError(cat(where,
                       ": gave other numbers than in forward. A layer that draws random numbers, or has a state, ",
                       "by other means than layer_options.h names must be kept"));
  }
  return outputs;
}

Tensors RecomputedRun::gradients(const Tensors& inputs, const Tensors& of_computed) const {
  Tensors found(inputs.size() + trained_.size());
  const c10::AutoGradMode grad(true);
  const SavedTensorsInMemory saves;
  ForwardScope then(state_, layer_);
  const Tensors leaves = leaves_of(inputs, differentiable_);
  const Tensors outputs = second_outputs(leaves);
  then.end_forward();
  Tensors roots, seeds, wanted;
  for (size_t k = 0; k < places_.size(); ++k) {
    if (!of_computed[k].defined()) continue;
    roots.push_back(outputs[places_[k]]);
    seeds.push_back(of_computed[k]);
  }
  const Tensors ends = joined_lists(leaves, trained_);
  std::vector<size_t> places;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (!ends[i].requires_grad() || index_of(ends[i], ends) < i) continue;
    wanted.push_back(ends[i]);
    places.push_back(i);
  }
  if (wanted.empty() || roots.empty()) return found;
  const WithoutHooks hooks(trained_);
  const auto parts = torch::autograd::grad(roots, wanted, seeds, false, false, /*allow_unused=*/true);
  for (size_t k = 0; k < parts.size(); ++k) found[places[k]] = parts[k];
  return found;
}

}  // namespace braid::modules
