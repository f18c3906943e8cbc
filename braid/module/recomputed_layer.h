// Runs a layer, with its activations kept or recomputed (layer_options.h).
#pragma once

#include <string>

#include "braid/module/layer_list.h"

namespace braid::modules {

// The ranks that draw from a process-wide random generator.
enum class ProcessGenerator {
  Own,     // this rank alone
  Shared,  // several ranks that are threads
};

struct LayerContext {
  std::string name;  // "layer fc of stage 1", for errors
  ProcessGenerator generator = ProcessGenerator::Own;
};

// Runs the layer's forward. Activations of a recomputed layer are freed before this returns, if gradients are enabled.
// Its backward runs on the calling thread of backward. An exception of the second forward gets `context.name`
// (layer_errors.h).
Tensors run_layer(const Layer& layer, const Tensors& inputs, const LayerContext& context);

}  // namespace braid::modules
