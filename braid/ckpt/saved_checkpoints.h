// The checkpoints in a run's folder: their names, their list, and the newest that is intact.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/file_lock.h"
#include "braid/base/file_system.h"

namespace braid::ckpt {

// A shared lock on a checkpoint's manifest.json that keeps the checkpoint from being removed while it is read.
// remove_checkpoint() (retention.h) requests the lock exclusively. Any number of readers hold it at the same time. The
// system releases it when a reader's process ends. No lock is held if there is no manifest, or if the file system has
// no locks.
class CheckpointReading {
 public:
  // Locks the checkpoint in this folder, which may be set aside (manifest.h); "" locks nothing. Throws IoError if the
  // checkpoint is being removed, or if its manifest cannot be opened or locked.
  explicit CheckpointReading(const std::string& directory);
  CheckpointReading(const CheckpointReading&) = delete;

  // Releases the lock, also for copies of this process made by fork(). May be called on any thread, any number of
  // times.
  void end();

 private:
  std::mutex mutex_;
  std::optional<AdvisoryLock> lock_;
};

// Returns run/step-N, the folder of the checkpoint of step N.
std::string checkpoint_folder(const std::string& run, int64_t step);
// Returns the step in such a folder's name, 12 for "step-12"; nothing for any other name, also for "step-012".
std::optional<int64_t> checkpoint_step(const std::string& name);

struct SavedCheckpoint {
  int64_t step = 0;
  std::string directory;  // checkpoint_folder(); an interrupted save may have set it aside (manifest.h)
};

// Returns the checkpoints of a run, the newest first; none if the run does not exist. A folder without a manifest is no
// checkpoint. A folder that cannot be examined counts as one, so that reading it reports the reason. Throws IoError if
// the run's folder cannot be read.
std::vector<SavedCheckpoint> saved_checkpoints(const std::string& run);

// Returns the half-written folders that interrupted saves have left in a run's folder.
std::vector<std::string> half_written_checkpoints(const std::string& run);

// Renames a checkpoint to step-N.undone, or to step-N.undone-2 and so on if the name is taken. The checkpoint can be
// read under the new name, but saved_checkpoints() does not list it. Returns the new name. Throws IoError.
std::string set_undone(const SavedCheckpoint& saved, FileSystem& files);
std::vector<std::string> undone_checkpoints(const std::string& run);

// Returns the entries of a checkpoint's folder that braid did not write. These are the entries that the manifest does
// not list or, if the manifest is damaged, those that are no safetensors files.
std::vector<std::string> entries_of_others(const std::string& directory);

struct CheckpointChoice {
  std::string directory;  // empty: none is intact
  // Newer ones that are damaged, with the reason: "run/step-6/manifest.json: cannot be read".
  std::vector<std::string> passed_over;
};

// Returns `path` itself if it is a checkpoint, or if it cannot be examined, so that reading it reports the reason.
// Otherwise takes `path` for the folder of a run, and returns the newest checkpoint that verify_checkpoint() accepts.
CheckpointChoice chosen_checkpoint(const std::string& path);

}  // namespace braid::ckpt
