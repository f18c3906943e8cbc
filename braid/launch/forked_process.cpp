// The child waits until its parent has opened a descriptor for it. So the descriptor cannot refer to another process
// that reuses the pid.
#include "braid/launch/forked_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::launch {
namespace {

constexpr idtype_t kByDescriptor = static_cast<idtype_t>(3);  // P_PIDFD, which some C libraries do not define
constexpr char kGo = 1;

// Returns true if the descriptor becomes readable within `milliseconds`.
bool readable(int descriptor, int milliseconds) {
  pollfd watched{descriptor, POLLIN, 0};
  int count = 0;
  do {
    count = poll(&watched, 1, milliseconds);
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

[[noreturn]] void refuse(const std::string& name, const char* call, int error) {
  throw RunError(cat("cannot start ", name, ": ", call, ": ", std::strerror(error)));
}

[[noreturn]] void wait_and_run(int line, pid_t parent, const std::function<void(int)>& life) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl(), perhaps after it sent kGo
  setpgid(0, 0);
  char go = 0;
  while (read(line, &go, 1) < 0 && errno == EINTR) {
  }
  if (go == kGo) life(line);
  _exit(1);  // the parent died or could not open a descriptor
}

// Collects the exit status. Returns in words how the process ended; it is unknown if other code has collected the
// status.
std::string end_of(int descriptor) {
  siginfo_t info{};
  int result = 0;
  do {
    result = waitid(kByDescriptor, static_cast<id_t>(descriptor), &info, WEXITED);
  } while (result < 0 && errno == EINTR);
  if (result < 0) {
    return "ended before its function had ended, how is not known: this program ignores SIGCHLD or waits for any child";
  }
  if (info.si_code == CLD_EXITED) return cat("exited with code ", info.si_status, " before its function had ended");
  return cat("killed by signal ", info.si_status, " (", strsignal(info.si_status), ")");
}

}  // namespace

ForkedProcess::ForkedProcess(const std::string& name, const std::function<void(int line)>& life) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) refuse(name, "socketpair", errno);
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    close(ends[0]);
    wait_and_run(ends[1], parent, life);
  }
  const int fork_error = errno;
  pid_ = process;
  close(ends[1]);
  line_ = ends[0];
  fcntl(line_, F_SETFL, O_NONBLOCK);
  if (process < 0) {
    forget();
    refuse(name, "fork", fork_error);
  }
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  const int open_error = descriptor_ < 0 ? errno : ESRCH;
  if (descriptor_ >= 0 && !readable(line_, 0) && ::send(line_, &kGo, 1, MSG_NOSIGNAL) == 1) return;
  forget();
  waitpid(process, nullptr, 0);
  refuse(name, "pidfd_open (Linux 5.4 or later)", open_error);
}

ForkedProcess::~ForkedProcess() {
  send(SIGKILL);
  if (runs() && readable(descriptor_, static_cast<int>(1000 * kDeathSeconds))) end_of(descriptor_);
  forget();
}

void ForkedProcess::send(int signal) const {
  if (runs()) syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0);
}

std::optional<std::string> ForkedProcess::end() {
  const bool ended = readable(descriptor_, 0);
  receive();  // after the check: an ended process has written all its bytes
  if (!ended) return std::nullopt;
  const std::string how = end_of(descriptor_);
  forget();
  return how;
}

bool ForkedProcess::send(const std::string& bytes) const {
  if (line_ < 0) return true;  // it has ended
  const ssize_t count = ::send(line_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) return errno == EPIPE || errno == ECONNRESET;  // it has ended
  return count == static_cast<ssize_t>(bytes.size());
}

void ForkedProcess::forget() {
  for (int* descriptor : {&descriptor_, &line_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

void ForkedProcess::receive() {
  char some[4096];
  while (line_ >= 0) {
    const ssize_t count = read(line_, some, sizeof some);
    if (count > 0) {
      received_.append(some, static_cast<size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      close(std::exchange(line_, -1));
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

}  // namespace braid::launch
