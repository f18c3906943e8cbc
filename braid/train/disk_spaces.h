// The spaces on disk of a run: what it keeps there, in memory.paths or train.out, which may not be there yet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "braid/param/disk_tensors.h"
#include "braid/param/swap_space.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the space of optimizer states, gradients and parameters; nothing if none of them is on disk.
std::optional<param::DiskSpace> disk_space(const RunSpec& spec, int num_microbatches);

// Returns the bytes of a rank's space for activations, more than their prediction; 0 if they are in memory.
int64_t swap_bytes(RunSpec spec);

// Returns that space; null if activations are in memory. What finds no room in it stays in memory. Throws ConfigError
// with all that is wrong with the folders.
std::shared_ptr<param::SwapSpace> swap_space(const RunSpec& spec);

}  // namespace braid::train
