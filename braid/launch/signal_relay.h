// The signals by which a terminal ends or stops a program, and SIGTERM, as something to read, for a thread that passes
// them on.
#pragma once

#include <csignal>
#include <vector>

namespace braid {

// Holds SIGHUP, SIGINT, SIGQUIT, SIGTERM and SIGTSTP back from the thread that makes it, until it is destroyed; those
// of them that the thread had blocked before stay as they were.
class SignalRelay {
 public:
  // Throws RunError when the system refuses.
  SignalRelay();
  // Signals taken meanwhile are raised now, with their usual effect on this process; SIGTSTP is stop()'s.
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Readable when a signal has come.
  int descriptor() const { return descriptor_; }
  // Those that have come since the last call.
  std::vector<int> take();
  // SIGTSTP with its usual effect on this process: returns when that is continued, at once where it is not stopped.
  void stop();
  // In a forked child: signals are its own again.
  void leave_to_child();

 private:
  sigset_t before_;
  int descriptor_ = -1;
  std::vector<int> taken_;
};

}  // namespace braid
