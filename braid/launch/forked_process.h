// A process forked from this one, identified by a descriptor instead of its pid. The system may reuse a pid as soon as
// its process has ended and has been waited for: by a handler of SIGCHLD, by a wait for any child, or by the kernel if
// SIGCHLD is ignored. The descriptor (pidfd_open(2), Linux 5.4 or later) always refers to this process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace braid::launch {

class ForkedProcess {
 public:
  // The time that a process may take to die of SIGKILL, while the kernel frees its memory. A process in uninterruptible
  // sleep (a dead NFS server, a faulty disk) does not die.
  static constexpr double kDeathSeconds = 30;

  // Forks a process that runs `life`. REQUIRES: `life` does not return. received() returns the bytes that `life` writes
  // to the descriptor `line`. The kernel kills the process when the calling thread ends. The process is in its own
  // process group, so the terminal's signals reach it only through send(). Throws RunError, with `name`, if the system
  // refuses.
  ForkedProcess(const std::string& name, const std::function<void(int line)>& life);
  // Kills the process if it still runs, and waits up to kDeathSeconds for its end.
  ~ForkedProcess();
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  // Returns true until end() has returned that the process has ended, or forget() is called.
  bool runs() const { return descriptor_ >= 0; }
  // After the process has ended, this pid may belong to another process.
  pid_t pid() const { return pid_; }
  // Sends `signal` to the process. Does nothing if the process has ended.
  void send(int signal) const;
  // Reads the bytes that the process has written. Returns how the process ended, in words; nullopt while it runs.
  std::optional<std::string> end();
  // Returns all bytes of the process that end() has read.
  const std::string& received() const { return received_; }

  // Writes `bytes` to the process without blocking. Returns false if they do not all fit into the socket's buffer.
  // Returns true if they do, or if the process has ended.
  bool send(const std::string& bytes) const;

  // Returns a descriptor that is readable once the process has ended; -1 after end() has returned how it ended.
  int descriptor() const { return descriptor_; }
  // Returns a descriptor that is readable when the process has written, or has closed its end of the stream; -1 after
  // end() has noticed the close.
  int line() const { return line_; }
  // Closes the descriptors without killing the process. A forked child calls this, because the descriptors belong to
  // its parent. The parent calls it to leave behind a process that does not die.
  void forget();

 private:
  void receive();

  pid_t pid_ = -1;
  int descriptor_ = -1, line_ = -1;
  std::string received_;
};

}  // namespace braid::launch
