// Keeps a checkpoint from being removed while somebody reads it. It knows no format: it holds a file that every
// checkpoint has.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "braid/base/advisory_lock.h"

namespace braid {

// A shared lock on manifest.json, which remove_checkpoint() (retention.h) asks for alone. Any number of readers hold it
// at the same time; the system gives it back when they end. Nothing is held where there is no manifest, or where the
// file system has no locks.
class CheckpointReading {
 public:
  // Of a checkpoint's folder, which may be set aside (manifest.h); "": of none. Throws IoError when it is being removed
  // at this moment, or when the manifest cannot be opened or locked.
  explicit CheckpointReading(const std::string& directory);
  CheckpointReading(const CheckpointReading&) = delete;

  // Gives it back, for copies that fork() has made of this too. Any thread calls it, any number of times.
  void end();

 private:
  std::mutex mutex_;
  std::optional<AdvisoryLock> lock_;
};

}  // namespace braid
