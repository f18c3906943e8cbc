// A process forked from this one, held by a descriptor. The system may give a pid to another process as soon as the
// first has ended and been waited for: by a handler of SIGCHLD, by a wait for any child, or by the kernel where SIGCHLD
// is ignored. The descriptor (pidfd_open(2), Linux 5.4 or later) means this process for ever.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace braid::launch {

class ForkedProcess {
 public:
  // The time that a process may take to die of SIGKILL: the kernel frees its memory first. A process in uninterruptible
  // sleep (a dead NFS server, a faulty disk) does not die.
  static constexpr double kDeathSeconds = 30;

  // Forks. The new process dies with the calling thread, is in a process group of its own, so that the terminal's
  // signals reach it only by send(), and runs `life`, which does not return; what it writes to the descriptor `line` is
  // heard() here. Throws RunError, with `name`, when the system refuses.
  ForkedProcess(const std::string& name, const std::function<void(int line)>& life);
  // Kills the process, if it still runs, and waits for its end for kDeathSeconds.
  ~ForkedProcess();
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  bool runs() const { return descriptor_ >= 0; }  // as far as end() has noticed
  pid_t pid() const { return pid_; }              // another process's, perhaps, once it does not run any more
  // Does nothing to a process that has ended.
  void send(int signal) const;
  // Reads what the process has written since, and returns how it ended, in words; nullopt while it runs.
  std::optional<std::string> end();
  // All that the process has written, as far as end() has read it.
  const std::string& heard() const { return heard_; }

  // Writes to its line without waiting: whether there was room.
  bool say(const std::string& bytes) const;

  // Readable when it has ended; -1 after end() has said so.
  int descriptor() const { return descriptor_; }
  // Readable when it has written, and when it can write no more; -1 once end() has noticed that.
  int line() const { return line_; }
  // Closes the descriptors: in another forked process, since they are for the parent; in the parent, to leave a process
  // behind that does not die.
  void forget();

 private:
  void hear();

  pid_t pid_ = -1;
  int descriptor_ = -1, line_ = -1;
  std::string heard_;
};

}  // namespace braid::launch
