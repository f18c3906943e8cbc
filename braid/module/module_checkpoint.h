// What a checkpoint has of users' modules and of a torch optimizer that trains them: weights and buffers under torch's
// own names, the optimizer's states under these behind a "/". It knows no files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/module/layer_list.h"
#include "braid/module/synced_modules.h"

namespace torch::optim {
class Optimizer;
}

namespace braid {

struct NamedTensor {
  std::string name;  // the layer's, ".", what torch calls it there: "fc1.weight"
  at::Tensor tensor;
};
// Each tensor once, under its first name; what a function trains is numbered.
std::vector<NamedTensor> named_parameters(const LayerList& layers);
std::vector<NamedTensor> named_buffers(const LayerList& layers);

// Writes parameters and buffers, which are whole, to a safetensors file with these names, one tensor after another, and
// puts it in the place of `path` at one stroke. On one rank. Throws IoError.
void write_weights(const std::string& path, const LayerList& layers);
// Reads what write_weights(), or safetensors.torch.save_file, has written. Throws IoError, and ConfigError with every
// tensor that is missing, too many, or of another shape or type, before anything changes.
void read_weights(const std::string& path, const LayerList& layers);

// The states of Adam, AdamW and SGD: "exp_avg/fc1.weight". Throws ConfigError for other optimizers.
class ModuleCheckpoint {
 public:
  // All of it outlives this. `optimizer` updates the parameters of `synced`.
  ModuleCheckpoint(const LayerList& layers, const SyncedModules& synced, torch::optim::Optimizer& optimizer);

  // This rank's part of what is there.
  std::vector<PlacedTensor> tensors() const;
  // Reads all from `directory`, on any number of ranks: states that the checkpoint has and the optimizer has not yet
  // are made, others that it has go. Throws as load_checkpoint(), before anything changes.
  void load(const std::string& directory);

 private:
  struct Part {
    std::string name;
    Placement placement;
    int64_t at = 0;  // first element in the tensor that the optimizer updates
  };
  std::vector<Part> parts_of(size_t updated) const;
  void add_weights(std::vector<PlacedTensor>& tensors) const;

  const LayerList& layers_;
  const SyncedModules& synced_;
  torch::optim::Optimizer& optimizer_;
  std::vector<std::string> names_;  // of the store's parameters
};

}  // namespace braid
