// Decides which checkpoints of a run to keep and removes the others. Runs on one rank that owns the run's folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/ckpt/saved_checkpoints.h"

namespace braid::ckpt {

struct Retention {
  int newest = 0;  // number of newest checkpoints to keep; 0: all
  int best = 0;    // number with the lowest known losses to keep; a tie keeps the newer
};

// Returns the checkpoints of the run to remove, the newest first. `losses` is by step. Only checkpoints that can be
// read, and whose files have the sizes in the manifest, count as kept. So `newest` of these always remain, or all if
// there are fewer. Throws IoError if the folder cannot be read.
std::vector<SavedCheckpoint> superseded(const std::string& run, const Retention& retention,
                                        const std::map<int64_t, double>& losses);

// Removes a checkpoint. It is first renamed to step-N.removed, so that a partly removed checkpoint is never visible.
// Returns false, and keeps the checkpoint, while a reader holds its lock (CheckpointReading). On a file system without
// locks, readers are not detected. Throws IoError, also if the manifest cannot be opened for writing, which the lock
// needs (file_lock.h).
bool remove_checkpoint(const SavedCheckpoint& saved, FileSystem& files);

// Returns the folders that interrupted removals have left.
std::vector<std::string> half_removed_checkpoints(const std::string& run);

}  // namespace braid::ckpt
