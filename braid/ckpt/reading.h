// Keeps a checkpoint from being removed while somebody reads it. It knows no format: it holds a file that every
// checkpoint has.
#pragma once

#include <string>

namespace braid {

// A shared flock(2) on manifest.json, which remove_checkpoint() (retention.h) asks for alone. Any number of readers
// hold it at the same time; the system gives it back when they end. Where the file system has no locks, or the reader
// may not open the file, nothing is held, and reading says what is wrong.
class CheckpointReading {
 public:
  // Of a checkpoint's folder, which may be set aside (manifest.h); "": of none. Throws IoError when it is being removed
  // at this moment.
  explicit CheckpointReading(const std::string& directory);
  ~CheckpointReading();
  CheckpointReading(const CheckpointReading&) = delete;

  // Gives it back, for copies that fork() has made of this too.
  void end();

 private:
  int descriptor_ = -1;
};

}  // namespace braid
