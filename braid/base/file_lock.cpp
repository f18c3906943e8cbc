// Locks by flock(2).
#include "braid/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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
  if (result_ == LockResult::Granted) ::flock(descriptor_, LOCK_UN);  // a copy of the descriptor may outlive this
  ::close(std::exchange(descriptor_, -1));
}

namespace {

constexpr size_t kMaxOwnerBytes = 400;  // of the owner's line, which another program may have written

// Opens first and checks the kind of file afterwards, since a named pipe can also be opened for reading and writing.
int opened_lock(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  const int fault = errno;
  struct stat about {};
  const bool looked = descriptor < 0 ? ::lstat(path.c_str(), &about) == 0 : ::fstat(descriptor, &about) == 0;
  if (descriptor >= 0 && looked && S_ISREG(about.st_mode)) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  if (!looked || S_ISREG(about.st_mode)) throw IoError(path, -1, cat("cannot open: ", std::strerror(fault)));
  const char* const kind = S_ISLNK(about.st_mode) ? "a link" : S_ISDIR(about.st_mode) ? "a folder" : "a pipe or device";
  throw IoError(path, -1, cat("is ", kind, ", not a regular file"));
}

bool is_at(int descriptor, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(std::string path, const std::string& owner, Flock call)
    : path_(std::move(path)), call_(call ? call : ::flock), descriptor_(opened_lock(path_)) {
  try {
    while (!request(owner)) {
      const int next = opened_lock(path_);
      ::close(std::exchange(descriptor_, next));
    }
  } catch (const IoError&) {
    ::close(descriptor_);
    throw;
  }
}

// Returns false if the file was removed between opening and locking: such a lock excludes no other process.
bool FileLock::request(const std::string& owner) {
  switch (request_lock(descriptor_, LockMode::Exclusive, path_, call_)) {
    case LockResult::Granted:
      if (!is_at(descriptor_, path_)) return false;
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
  return true;
}

FileLock::~FileLock() {
  if (state_ == State::Ours) {
    // This owner's line must not stay until the next owner has written its own.
    [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, 0);
    call_(descriptor_, LOCK_UN);  // a copy of the descriptor may outlive this
  }
  ::close(descriptor_);
}

void FileLock::remove() const {
  if (state_ == State::Ours && is_at(descriptor_, path_)) ::unlink(path_.c_str());
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
