// flock(2).
#include "braid/ckpt/reading.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "braid/base/errors.h"
#include "braid/ckpt/manifest.h"

namespace braid {

CheckpointReading::CheckpointReading(const std::string& directory) {
  if (directory.empty()) return;
  const std::string manifest = found_directory(directory) + "/manifest.json";
  descriptor_ = ::open(manifest.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor_ < 0) return;
  if (::flock(descriptor_, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw IoError(directory, -1, "is being removed by the run that wrote it (checkpoint.keep)");
}

CheckpointReading::~CheckpointReading() { end(); }

void CheckpointReading::end() {
  if (descriptor_ < 0) return;
  ::flock(descriptor_, LOCK_UN);  // copies of the descriptor may outlive this
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace braid
