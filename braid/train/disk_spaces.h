// The spaces on disk of a run: what it keeps there, in memory.paths or train.out, which may not be there yet.
#pragma once

#include <memory>
#include <optional>

#include "braid/param/disk_tensors.h"
#include "braid/param/swap_space.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the space of optimizer states, gradients and parameters; nothing if none of them is on disk.
std::optional<param::DiskSpace> disk_space(const RunSpec& spec, int num_microbatches);

// Returns a space for the activations of a rank, larger than their prediction; null if they are in memory. What finds
// no room in it stays in memory. Throws ConfigError with all that is wrong with the folders.
std::shared_ptr<param::SwapSpace> swap_space(RunSpec spec);

}  // namespace braid::train
