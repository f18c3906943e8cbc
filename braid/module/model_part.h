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

// A scope in which a layer's parameters are whole.
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

// A scope in which all replicas have the same model to read: the newest parameters of `layers`, whole, and rank 0's
// buffers. If replicas train independently, the parameters are the mean over them, and each replica has its own
// parameters and buffers again afterwards.
class WholeModel {
 public:
  // Collective over `replicas`. `synced` is null if no parameter is trained. All arguments outlive this.
  WholeModel(const LayerList& layers, const SyncedModules* synced, Communicator& replicas);
  WholeModel(const WholeModel&) = delete;

 private:
  std::optional<sync::MeanOfReplicas> mean_;
  std::optional<KeptBuffers> own_;
  std::list<WholeLayer> whole_;
};

// One rank's part of a model, between steps.
struct ModelPart {
  // All layers of the model, the same on every rank. Of other ranks' layers only names are used.
  const LayerList& all;
  const LayerList& own;         // the layers that this rank runs
  const SyncedModules* synced;  // replication of their trained parameters; null: none
  const SyncSpec& sync;         // settings of the replication
  int64_t num_steps;            // steps done
  Communicator& world;          // all ranks that have layers of the model
};

struct NamedTensor {
  std::string name;  // the layer's name, ".", and torch's name in the layer: "fc1.weight"
  at::Tensor tensor;
};

// Return this rank's tensors, each once, under its first name in the whole model. Parameters of a function are
// numbered.
std::vector<NamedTensor> named_parameters(const ModelPart& part);
std::vector<NamedTensor> named_buffers(const ModelPart& part);
// Returns this rank's parameters, then its buffers.
std::vector<NamedTensor> named_weights(const ModelPart& part);
// Returns the names of the whole model's weights.
std::set<std::string> names_of_weights(const ModelPart& part);

// Throws ConfigError naming every tensor that files cannot hold: its type is not supported, another tensor has its
// name, or the name has a "/", which stands before optimizer states.
void require_stored(const ModelPart& part);

}  // namespace braid::modules
