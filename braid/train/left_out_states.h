// The states of a checkpoint that a resumed run does not read, because they do not fit it.
#pragma once

#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// The keys whose values decide which residual a rank has.
inline constexpr const char* kRanksOfResiduals[] = {"mesh.data", "mesh.tensor", "mesh.pipe", "pipeline.schedule",
                                                    "pipeline.partition"};

// Removes the residuals of compression (names that begin with kReducerState) from the tensors to read, if those in the
// checkpoint do not fit: they are of another compression or of other ranks. Returns the reason as a text for the user;
// "" if nothing is removed.
std::string leave_out_reducer_state(std::vector<ckpt::PlacedTensor>& tensors, const RunSpec& spec,
                                    const ckpt::CheckpointInfo& info, const std::string& directory);

// Removes the optimizer states of parameters that were frozen in the checkpoint's run, since the checkpoint has none.
// Returns the names of these parameters.
std::vector<std::string> leave_out_states_of_frozen(std::vector<ckpt::PlacedTensor>& tensors,
                                                    const ckpt::CheckpointInfo& info, const std::string& directory);

}  // namespace braid::train
