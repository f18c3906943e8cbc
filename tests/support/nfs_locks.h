// flock(2) as an NFS client answers it, for a whole test binary: the function of this header stands before the C
// library's. It is weak, so any number of sources include it.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace braid {

// While one exists, requests that the descriptor's mode does not allow fail with EBADF: NFS emulates flock(2) by
// byte-range locks. `fault`, unless 0, is the answer to every request instead.
class NfsLocks {
 public:
  explicit NfsLocks(int fault = 0) : before_(current_) {
    fault_ = fault;
    current_ = this;
  }
  ~NfsLocks() { current_ = before_; }
  NfsLocks(const NfsLocks&) = delete;

  static int answer(int descriptor, int operation) {
    if (!current_) return 0;
    if (current_->fault_ != 0) return current_->fault_;
    const int mode = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
    const bool refused = (operation & LOCK_EX && mode == O_RDONLY) || (operation & LOCK_SH && mode == O_WRONLY);
    return refused ? EBADF : 0;
  }

 private:
  static inline NfsLocks* current_ = nullptr;
  NfsLocks* const before_;
  int fault_ = 0;
};

}  // namespace braid

extern "C" __attribute__((weak)) int flock(int descriptor, int operation) noexcept {
  if (const int fault = braid::NfsLocks::answer(descriptor, operation)) {
    errno = fault;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}
