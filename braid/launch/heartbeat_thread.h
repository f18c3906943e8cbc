// A background thread that answers the control channel and sends heartbeats while the node is busy preparing data.
#pragma once

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "braid/control/job_control.h"

namespace braid::launch {

// A process that is stopped, or whose host is, does not beat, and is lost by its silence. That this thread lives is no
// sign that the node gets on: the beats end when its other threads have computed nothing for ten times
// `progress_seconds`, unless a disk or a debugger holds the first of them; 0: they never end. Threads that compute in
// vain are not told from others.
class HeartbeatThread {
 public:
  // `control` outlives this, and is this one's alone until leave().
  HeartbeatThread(control::JobControl& control, double progress_seconds);
  ~HeartbeatThread();
  HeartbeatThread(const HeartbeatThread&) = delete;
  HeartbeatThread& operator=(const HeartbeatThread&) = delete;

  // Ends the thread and returns the messages and node failures received meanwhile; outdated progress reports are
  // dropped. Afterwards the kernel has no such thread either: this process may fork. Throws the thread's exception.
  std::vector<control::JobEvent> leave();

 private:
  void run() noexcept;
  void listen();
  void end();
  bool stands_still();

  control::JobControl& control_;
  const double patience_seconds_;
  std::vector<control::JobEvent> heard_;
  std::exception_ptr failure_;
  double computed_seconds_ = 0, looked_at_, sign_at_;
  std::atomic<bool> leaving_{false};
  int wake_;  // a descriptor
  std::atomic<int> thread_id_{0};
  std::thread thread_;
};

}  // namespace braid::launch
