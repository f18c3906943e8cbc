// Checkpoints of users' modules and of the torch optimizer that trains them. Weights and buffers have torch's names
// ("fc1.weight"). An optimizer state is named by its kind, a "/" and its parameter ("exp_avg/fc1.weight"). Each rank
// saves and loads its own part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/module/model_part.h"
#include "braid/module/torch_state.h"

namespace torch::optim {
class Optimizer;
}

namespace braid::modules {

class ModuleCheckpoint {
 public:
  // Created between steps. Both arguments outlive this. `optimizer` updates the parameters of `part` or, if these are
  // sharded, ranges of them. Throws ConfigError as names_of_numbers(), require_stored() and
  // require_parameters_of() do.
  ModuleCheckpoint(const ModelPart& part, torch::optim::Optimizer& optimizer);

  // Returns this rank's weights, buffers and optimizer states ("exp_avg/fc1.weight").
  std::vector<ckpt::PlacedTensor> tensors() const;
  // Collective over part.world. Reads weights, buffers and optimizer states from `directory`, whichever ranks saved it.
  // Afterwards the optimizer has exactly the states of the checkpoint. Returns the number of steps. Throws the same
  // error on all ranks, before anything changes:
  // * ConfigError with every tensor that is missing, that the model or optimizer does not have, or that has another
  //   shape or type, or if the checkpoint is of another kind of optimizer;
  // * IoError naming the damaged file.
  int64_t load(const std::string& directory);

 private:
  // A parameter, or a box of one, in a tensor that the optimizer updates.
  struct Part {
    std::string name;
    mesh::Placement placement;
    int64_t at = 0;  // its first element in that tensor
  };
  struct Updated {
    at::Tensor tensor;
    std::vector<Part> parts;
  };
  struct Wanted;

  static at::Tensor view_of(const at::Tensor& updated, const Part& part);
  std::vector<Updated> whole_parameters(const std::vector<NamedTensor>& parameters) const;
  std::vector<Updated> owned_ranges(const std::vector<NamedTensor>& parameters) const;
  void add_weights(std::vector<ckpt::PlacedTensor>& tensors) const;
  std::vector<Problem> unknown(const ckpt::Manifest& manifest) const;
  bool has_made_no_step() const;
  Wanted wanted(const ckpt::Manifest& manifest) const;
  void count(ckpt::CheckpointReader& reader, Wanted& wanted) const;

  const ModelPart& part_;
  torch::optim::Optimizer& optimizer_;
  std::vector<Updated> updated_;
};

}  // namespace braid::modules
