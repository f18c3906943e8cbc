// One rank's part of a model that several ranks train, with the names of its tensors.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/module_store.h"
#include "braid/module/synced_modules.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/local_sgd.h"

namespace braid::modules {

// One model, to be looked at, of what ranks share out or train apart.

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

// Between steps.
struct ModelPart {
  const LayerList& all;         // of the model, as every rank lists them; of others' layers only names are looked at
  const LayerList& own;         // those that this rank runs
  const SyncedModules* synced;  // what keeps their trained parameters in step with other ranks' copies; null: nothing
  const SyncSpec& sync;         // and how
  int64_t num_steps;            // have been made
  Communicator& world;          // all ranks that have layers of the model
};

struct NamedTensor {
  std::string name;  // the layer's, ".", what torch calls it there: "fc1.weight"
  at::Tensor tensor;
};

// This rank's, each once, under its first name in the whole model; what a function trains is numbered.
std::vector<NamedTensor> named_parameters(const ModelPart& part);
std::vector<NamedTensor> named_buffers(const ModelPart& part);
// All parameters, then all buffers.
std::vector<NamedTensor> named_weights(const ModelPart& part);
// Returns the names of the whole model's weights.
std::set<std::string> names_of_weights(const ModelPart& part);

// Throws ConfigError naming every tensor that files cannot hold: by its type, or by a name that another has too or that
// has a "/", which stands before optimizers' states.
void require_stored(const ModelPart& part);

}  // namespace braid::modules
