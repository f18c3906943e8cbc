// A background thread that answers the control channel and sends heartbeats while the node is busy preparing data.
#pragma once

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "braid/control/job_control.h"

namespace braid::launch {

// The heartbeat thread of a node. If the process or its host is stopped, the node sends no heartbeats and counts as
// failed.
//
// A running heartbeat thread does not prove that the node makes progress. So heartbeats stop when the other threads
// have used no CPU time for ten times `progress_seconds`, unless a disk or a debugger holds up the main thread. They
// never stop if `progress_seconds` is 0. Threads that compute without progress are not detected.
class HeartbeatThread {
 public:
  // REQUIRES: `control` outlives this, and no other code uses `control` before leave() returns or this is destroyed.
  HeartbeatThread(control::JobControl& control, double progress_seconds);
  ~HeartbeatThread();
  HeartbeatThread(const HeartbeatThread&) = delete;
  HeartbeatThread& operator=(const HeartbeatThread&) = delete;

  // Ends the thread. Returns the messages and node failures that it has received, without progress reports, which are
  // outdated. Afterwards the kernel does not list the thread any more, so this process may fork. Throws the exception
  // that ended the thread, if any.
  std::vector<control::JobEvent> leave();

 private:
  void run() noexcept;
  void listen();
  void end();
  bool stands_still();

  control::JobControl& control_;
  const double patience_seconds_;
  std::vector<control::JobEvent> events_;
  std::exception_ptr failure_;
  double computed_seconds_ = 0, looked_at_, sign_at_;
  std::atomic<bool> leaving_{false};
  int wake_;  // descriptor of an eventfd that wakes the thread
  std::atomic<int> thread_id_{0};
  std::thread thread_;
};

}  // namespace braid::launch
