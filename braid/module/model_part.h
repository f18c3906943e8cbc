// One rank's part of a model that several ranks train, with the names of its tensors.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/synced_modules.h"
#include "braid/spec/sync_spec.h"

namespace braid::modules {

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
