// The checkpoints in a run's folder: their names, a list of them, and the newest that is whole.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/base/file_lock.h"
#include "braid/base/file_system.h"

namespace braid::ckpt {

// Keeps a checkpoint from being removed while it is read, by a shared lock on its manifest.

// A shared lock on manifest.json, which remove_checkpoint() (retention.h) asks for alone. Any number of readers hold it
// at the same time; the system gives it back when they end. Nothing is held where there is no manifest, or where the
// file system has no locks.
class CheckpointReading {
 public:
  // Locks the checkpoint in this folder, which may be set aside (manifest.h); "" locks nothing. Throws IoError if it is
  // being removed, or if its manifest cannot be opened or locked.
  explicit CheckpointReading(const std::string& directory);
  CheckpointReading(const CheckpointReading&) = delete;

  // Gives it back, for copies that fork() has made of this too. Any thread calls it, any number of times.
  void end();

 private:
  std::mutex mutex_;
  std::optional<AdvisoryLock> lock_;
};

// run/step-N, where the checkpoint of step N is or goes.
std::string checkpoint_folder(const std::string& run, int64_t step);
// The step of such a folder's name, of "step-12"; nothing for any other name, "step-012" included.
std::optional<int64_t> checkpoint_step(const std::string& name);

struct SavedCheckpoint {
  int64_t step = 0;
  std::string directory;  // checkpoint_folder(); a save that was stopped may have set it aside (manifest.h)
};

// The newest first. A folder without a manifest is none; one that cannot be looked at is one, and reading it says why.
// Empty when there is no such run. Throws IoError when the folder cannot be read.
std::vector<SavedCheckpoint> saved_checkpoints(const std::string& run);

// The folders that interrupted saves have left half-written in a run's folder.
std::vector<std::string> half_written_checkpoints(const std::string& run);

// Renames a checkpoint to step-N.undone (step-N.undone-2 where that is taken, and so on): it can be read under that
// name, and saved_checkpoints() does not list it. Returns the name. Throws IoError.
std::string set_undone(const SavedCheckpoint& saved, FileSystem& files);
std::vector<std::string> undone_checkpoints(const std::string& run);

// Entries of a checkpoint's folder that braid did not write: those that its manifest does not list, or, where the
// manifest is damaged, those that are no safetensors files.
std::vector<std::string> entries_of_others(const std::string& directory);

struct CheckpointChoice {
  std::string directory;                 // empty: none is whole
  std::vector<std::string> passed_over;  // newer ones that are not, and why: "run/step-6/manifest.json: cannot be read"
};

// `path` itself when it is a checkpoint, or cannot be looked at, so that reading it says why. Else it is taken for the
// folder of a run: the newest of its checkpoints in which every byte is as the manifest says (verify_checkpoint).
CheckpointChoice chosen_checkpoint(const std::string& path);

}  // namespace braid::ckpt
