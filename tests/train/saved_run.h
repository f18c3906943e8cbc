// Training runs that save all of their tensors, to compare those of several layouts.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "braid/spec/run_spec.h"
#include "tests/support/scratch_folder.h"

namespace braid {

using Tensors = std::map<std::string, at::Tensor>;

// Returns every tensor of a checkpoint, whole.
Tensors tensors_of_checkpoint(const std::string& directory);

// A layout whose runs are compared.
struct SavedLayout {
  MeshSpec mesh;
  int zero = 0;
  const char* schedule = "1f1b";
};

// Returns a reproducible run of three steps in float32, of tiny_spec() with two layers. The caller may change its
// sizes.
RunSpec saved_spec(OptimizerKind kind, StateType states, const SavedLayout& layout);

class SavedRun : public ScratchFolder {
 protected:
  // Trains from step 0, or from the checkpoint `from` of two steps, to the last step. Saves step 2 as `middle` and
  // returns what is saved at the end.
  Tensors trained(const RunSpec& spec, const std::string& from, const std::string& middle = "");

 private:
  int num_runs_ = 0;
};

}  // namespace braid
