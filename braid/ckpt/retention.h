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
  int newest = 0;  // 0: all
  int best = 0;    // of all those of known losses the lowest; of equal ones the newer
};

// Those of the run that do not stay, the newest first. Only checkpoints count that can be read and whose files have the
// sizes that the manifest says: there are always `newest` of these, or all. Throws IoError when the folder cannot be
// read.
std::vector<SavedCheckpoint> superseded(const std::string& run, const Retention& retention,
                                        const std::map<int64_t, double>& losses);

// Removes a checkpoint. It is first renamed to step-N.removed, so that it is never there in part. Returns false and
// leaves it while somebody reads it (saved_checkpoints.h); on a file system without locks, readers are not noticed.
// Throws IoError, also if its manifest cannot be opened for writing, which the lock needs (file_lock.h).
bool remove_checkpoint(const SavedCheckpoint& saved, FileSystem& files);

// Folders of removals that were interrupted.
std::vector<std::string> half_removed_checkpoints(const std::string& run);

}  // namespace braid::ckpt
