// One forward of a recomputed layer (layer_options.h): the first forward, and the second, which backward
// differentiates.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <utility>
#include <vector>

#include "braid/module/forward_state.h"
#include "braid/module/layer_list.h"
#include "braid/module/recomputed_layer.h"
#include "braid/module/shape_trace.h"
#include "braid/module/write_detector.h"

namespace braid::modules {

// Holds what the second forward needs, except the inputs, which autograd saves. An output of the layer is *computed* if
// it needs a gradient and is neither an input nor a parameter. Auxiliary losses are outputs too.
class RecomputedRun final : public torch::CustomClassHolder {
 public:
  // `trained` are the layer's parameters that require a gradient.
  RecomputedRun(const Layer& layer, const Tensors& inputs, Tensors trained, LayerContext context);

  // Runs the first forward, of `layer`, in which functions keep their state. Throws ConfigError if the layer cannot be
  // recomputed.
  void run(const Layer& layer, const Tensors& inputs);
  bool has_computed_outputs() const { return !places_.empty(); }
  // Returns the computed outputs, each once and without a graph.
  Tensors take_computed() { return std::exchange(computed_, {}); }
  // Returns the layer's outputs, and contributes its auxiliary losses. `computed` are the computed ones, with the outer
  // graph.
  Tensors take_outputs(const Tensors& computed);

  // Runs the second forward. Returns the gradients of `inputs` and of the trained parameters, for the gradients
  // `of_computed`. Undefined gradients are zero.
  Tensors gradients(const Tensors& inputs, const Tensors& of_computed) const;
  // Throws RunError if a tensor that the second forward reads was written after the first.
  void require_unwritten() const;
  ConfigError refusal(std::string rule) const;

 private:
  Tensors watched_outputs(const Layer& layer, const Tensors& inputs);
  void classify_outputs(const Tensors& outputs, const Tensors& inputs, const Tensors& given);
  Tensors second_outputs(const Tensors& leaves) const;

  const Layer layer_;  // a copy from before the first forward, because functions may have a state
  const LayerContext context_;
  const Tensors trained_;
  ForwardState state_;
  std::vector<bool> differentiable_;  // by input: it requires a gradient
  WriteDetector unwritten_;
  std::vector<TensorSpec> specs_;   // of all outputs
  size_t num_contributions_ = 0;    // auxiliary losses, the last outputs
  std::vector<size_t> places_;      // by computed output: its place among all
  Tensors samples_;                 // by computed output: some of its numbers
  std::vector<size_t> first_same_;  // by output: the first that is the same tensor
  Tensors outputs_, computed_;      // until taken
};

}  // namespace braid::modules
