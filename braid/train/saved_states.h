// Optimizer states of a resumed run whose checkpoint has them in another form: codes of 8 bits and scales, or numbers.
#pragma once

#include <optional>
#include <vector>

#include "braid/ckpt/manifest.h"
#include "braid/comm/communicator.h"
#include "braid/optim/optimizer.h"
#include "braid/param/disk_tensors.h"
#include "braid/param/param_store.h"

namespace braid::train {

// Returns the states to read a checkpoint into: `states` or, for those that the checkpoint has in the other form, new
// ones in conversion_memory(). Numbers are float32 then.
std::vector<optim::OptimizerState> states_to_read(const std::vector<optim::OptimizerState>& states,
                                                  const ckpt::Manifest& manifest,
                                                  const std::optional<param::DiskSpace>& space);

// Throws ConfigError on all ranks of `world` if codes are to be read and a rank would read a part of a block.
// Collective.
void refuse_parts_of_blocks(const std::vector<optim::OptimizerState>& read, const param::ParamStore& store,
                            Communicator& world);

// Sets `states` to what was read, where it was read into new ones. Rounds to nearest (optim/quantized_states.h).
void take_states(const std::vector<optim::OptimizerState>& read, const std::vector<optim::OptimizerState>& states);

}  // namespace braid::train
