// Layers whose parameters are whole in memory only while they run, because they are sharded or on disk.
//
// All ranks gather in one order, whichever layers their losses depend on: a backward gathers every layer of each
// forward that it comes to, from the last layer to the first and from the last forward to the first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "braid/module/layer_call.h"
#include "braid/sync/replication.h"

namespace braid::modules {

// Owned by a shared_ptr, because the graphs of forwards may outlive it.
class GatheredLayers : public std::enable_shared_from_this<GatheredLayers> {
 public:
  // `parameters` outlives this and has `num_layers` blocks.
  GatheredLayers(sync::ParameterSync& parameters, int num_layers) : parameters_(parameters), all_{0, num_layers} {}

  // Called at the same points of a backward on all ranks: parameters that are used only in layers from `layer` on get
  // no further gradients. May be empty.
  std::function<void(int layer)> on_done_from;

  // Called before the layers of a forward run one after another, with gradients enabled. Not called if every backward
  // is that of one forward.
  void begin_forward();
  // Forgets the forwards of earlier steps. Called before a step.
  void forget_forwards() { pending_.clear(); }
  // Returns the outputs of `forward`, that of `layer`, with its parameters whole. They are whole again in its
  // backward, if gradients are enabled. A backward with create_graph, or after this is gone, throws ConfigError.
  Tensors run(int layer, const Tensors& inputs, const std::function<Tensors(const Tensors&)>& forward);
  // Called before a backward through all layers.
  void begin_backward();
  // Called before the backward of one forward through the layers from `first` to `last` - 1. Gathers them even if none
  // of them has a backward.
  void begin_backward_of(int first, int last);
  // Called after the backward.
  void end_backward();
  // Called after a backward that failed, or before parameters change. Releases all layers.
  void give_up();

 private:
  struct Range {
    int first, last;
  };
  // A place in the order of backward. Before the backward of a forward's last layer, `layer` is one more than that.
  struct Place {
    int64_t forward;
    int layer;
  };
  void begin_layer(const Place& place);
  void start(int64_t forward);
  void go_to(int layer);
  void end_forward();
  void release();

  sync::ParameterSync& parameters_;
  const Range all_;
  Range range_ = all_;          // of the backward that runs
  std::optional<Place> at_;     // none: no layer has begun
  std::optional<int> held_;     // the layer that is acquired for its backward
  int64_t forward_ = 0;         // number of the latest
  std::set<int64_t> pending_;   // forwards of this step without a backward
  std::vector<int64_t> begun_;  // forwards that the backward has come to
};

}  // namespace braid::modules
