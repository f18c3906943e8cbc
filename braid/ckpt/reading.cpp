// The lock of a reader.
#include "braid/ckpt/reading.h"

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/ckpt/manifest.h"

namespace braid::ckpt {

CheckpointReading::CheckpointReading(const std::string& directory) {
  if (directory.empty()) return;
  const std::string manifest = found_directory(directory) + "/manifest.json";
  if (is_link(manifest) || path_kind(manifest) != PathKind::File) return;  // whoever reads it says what is wrong
  lock_.emplace(manifest, LockMode::Shared);
  if (lock_->result() != LockResult::HeldByAnother) return;
  throw IoError(directory, -1, "is being removed by the run that wrote it (checkpoint.keep)");
}

void CheckpointReading::end() {
  const std::scoped_lock hold(mutex_);
  lock_.reset();
}

}  // namespace braid::ckpt
