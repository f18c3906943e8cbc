// Layers whose parameters are whole in memory only while they run, because they are sharded or on disk.
#pragma once

#include <functional>
#include <vector>

#include "braid/module/layer_call.h"
#include "braid/sync/replication.h"

namespace braid::modules {

class GatheredLayers {
 public:
  // `parameters` outlives this and has `num_layers` blocks.
  GatheredLayers(sync::ParameterSync& parameters, int num_layers) : parameters_(parameters), held_(num_layers) {}

  // Called during a backward, when the backward of all layers from `layer` on is over, or does not run. May be empty.
  std::function<void(int layer)> on_done_from;

  // Returns the outputs of `run`, the forward of `layer`, with its parameters whole. They are whole again in its
  // backward, if gradients are enabled. A backward with create_graph throws ConfigError.
  Tensors run(int layer, const Tensors& inputs, const std::function<Tensors(const Tensors&)>& run);
  // Called after each backward. Releases the layers that had no gradient of an input to compute.
  void end_backward();
  // Called after a backward that failed. Releases all layers.
  void give_up();

 private:
  using Call = void (GatheredLayers::*)(int);
  Tensors with_call(const Tensors& tensors, int layer, Call call);
  void begin_backward_of(int layer);
  void end_backward_of(int layer);
  void release(int layer);

  sync::ParameterSync& parameters_;
  std::vector<int> held_;  // by layer: number of acquires for backward
};

}  // namespace braid::modules
