// Keeps a checkpoint from being removed while it is read, by a shared lock on its manifest.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "braid/base/advisory_lock.h"

namespace braid::ckpt {

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

}  // namespace braid::ckpt
