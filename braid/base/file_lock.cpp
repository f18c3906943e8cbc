// flock(2) on a file of its own.
#include "braid/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr size_t kMaxOwnerBytes = 400;  // of a line that somebody else has written

}  // namespace

FileLock::FileLock(std::string path, const std::string& owner, Flock call)
    : path_(std::move(path)),
      call_(call ? call : ::flock),
      descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (descriptor_ < 0) throw IoError(path_, -1, cat("cannot open: ", std::strerror(errno)));
  try {
    request(owner);
  } catch (const IoError&) {
    ::close(descriptor_);
    throw;
  }
}

void FileLock::request(const std::string& owner) {
  switch (request_lock(descriptor_, LockMode::Exclusive, path_, call_)) {
    case LockResult::Granted:
      write(owner + "\n");
      break;
    case LockResult::HeldByAnother:
      state_ = State::Theirs;
      owner_ = first_line();
      break;
    case LockResult::Unsupported:
      state_ = State::NoLocks;
      why_ = std::strerror(errno);
      break;
  }
}

FileLock::~FileLock() {
  if (state_ == State::Ours) {
    [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, 0);  // the next owner's line is not there at once
    call_(descriptor_, LOCK_UN);                                       // copies of the descriptor may outlive this
  }
  ::close(descriptor_);
}

void FileLock::write(const std::string& line) const {
  [[maybe_unused]] const bool written =
      ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, line.data(), line.size(), 0) > 0;
}

std::string FileLock::first_line() const {
  std::string text(kMaxOwnerBytes, '\0');
  const ssize_t bytes = ::pread(descriptor_, text.data(), text.size(), 0);
  text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return text.substr(0, text.find('\n'));
}

}  // namespace braid
