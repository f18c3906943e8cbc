// The states of a checkpoint that a resumed run does not read, because they do not fit it.
#pragma once

#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Keys on which the residuals of compression depend.
inline constexpr const char* kRanksOfResiduals[] = {"mesh.data", "mesh.tensor", "mesh.pipe", "pipeline.schedule",
                                                    "pipeline.partition"};

// Removes the residuals of compression (names that begin with kReducerState) from the tensors to read, if those in the
// checkpoint do not fit: they have another compression or other ranks. Then returns a sentence about it, else "".
std::string leave_out_reducer_state(std::vector<ckpt::PlacedTensor>& tensors, const RunSpec& spec,
                                    const ckpt::CheckpointInfo& info, const std::string& directory);

// Removes the states of parameters that were frozen in the run of the checkpoint, which has none of them. Returns the
// names of these parameters.
std::vector<std::string> leave_out_states_of_frozen(std::vector<ckpt::PlacedTensor>& tensors,
                                                    const ckpt::CheckpointInfo& info, const std::string& directory);

}  // namespace braid::train
