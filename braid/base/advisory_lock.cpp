// flock(2), and which of its errors are answers.
#include "braid/base/advisory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

LockResult request_lock(int descriptor, LockMode mode, const std::string& path, Flock call) {
  int failed = 0;
  do {
    failed = call(descriptor, (mode == LockMode::Shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
  } while (failed != 0 && errno == EINTR);
  if (failed == 0) return LockResult::Granted;
  if (errno == EWOULDBLOCK) return LockResult::HeldByAnother;
  if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) return LockResult::Unsupported;
  throw IoError(path, -1, cat("cannot lock: ", std::strerror(errno)));
}

AdvisoryLock::AdvisoryLock(const std::string& path, LockMode mode)
    : descriptor_(
          ::open(path.c_str(), (mode == LockMode::Shared ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
  if (descriptor_ < 0) throw IoError(path, -1, cat("cannot open: ", std::strerror(errno)));
  try {
    result_ = request_lock(descriptor_, mode, path, ::flock);
  } catch (const IoError&) {
    ::close(descriptor_);
    throw;
  }
}

void AdvisoryLock::release() {
  if (descriptor_ < 0) return;
  if (result_ == LockResult::Granted) ::flock(descriptor_, LOCK_UN);  // copies of the descriptor may outlive this
  ::close(std::exchange(descriptor_, -1));
}

}  // namespace braid
