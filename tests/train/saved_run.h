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

class SavedRun : public ScratchFolder {
 protected:
  // Trains from step 0, or from the checkpoint `from` of two steps, to the last step. Saves step 2 as `middle` and
  // returns what is saved at the end.
  Tensors trained(const RunSpec& spec, const std::string& from, const std::string& middle = "");

 private:
  int num_runs_ = 0;
};

}  // namespace braid
