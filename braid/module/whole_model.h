// One model, to be looked at, of what ranks share out or train apart.
#pragma once

#include <list>
#include <optional>

#include "braid/comm/communicator.h"
#include "braid/module/kept_buffers.h"
#include "braid/module/layer_list.h"
#include "braid/module/synced_modules.h"
#include "braid/sync/mean_of_replicas.h"

namespace braid::modules {

// A layer's parameters, whole while this lives.
class WholeLayer {
 public:
  WholeLayer(sync::ParameterSync& parameters, int layer) : parameters_(parameters), layer_(layer) {
    parameters.acquire(layer, param::Phase::Forward);
  }
  ~WholeLayer() { parameters_.release(layer_, param::Phase::Forward); }
  WholeLayer(const WholeLayer&) = delete;
  WholeLayer& operator=(const WholeLayer&) = delete;

 private:
  sync::ParameterSync& parameters_;
  const int layer_;
};

// While this lives, all replicas have the whole parameters of `layers` and the buffers of rank 0, the newest; where
// they train apart, the mean of all parameters. Afterwards each has its own again.
class WholeModel {
 public:
  // Collective over `replicas`. `synced` is null where no parameter is trained. All of it outlives this.
  WholeModel(const LayerList& layers, const SyncedModules* synced, Communicator& replicas);
  WholeModel(const WholeModel&) = delete;

 private:
  std::optional<sync::MeanOfReplicas> mean_;
  std::optional<KeptBuffers> own_;
  std::list<WholeLayer> whole_;
};

}  // namespace braid::modules
