// SIGTERM and the signals by which a terminal ends or stops a program, as a descriptor to read from, for a thread that
// passes them on to other processes.
#pragma once

#include <csignal>
#include <vector>

namespace braid::launch {

// Blocks `signals` in the thread that constructs it, until it is destroyed. A signal that the thread had blocked before
// stays blocked and is not taken here.
class SignalRelay {
 public:
  // Throws RunError when the system refuses.
  explicit SignalRelay(const std::vector<int>& signals);
  // Signals taken meanwhile are raised now, with their usual effect on this process; SIGTSTP is stop()'s.
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Readable when a signal has come.
  int descriptor() const { return descriptor_; }
  // Those that have come since the last call.
  std::vector<int> take();
  // Gives SIGTSTP its usual effect on this process. Returns when the process is continued, or at once where it was not
  // stopped.
  void stop();
  // Called in a forked child: restores its signal mask and closes the descriptor.
  void leave_to_child();

 private:
  sigset_t before_;
  int descriptor_ = -1;
  std::vector<int> taken_;
};

}  // namespace braid::launch
