// Detects a deadlock of a world at once, from what every rank does or waits for: all ranks wait for each other and none
// can ever continue. It tracks threads and queues, not operations. It has no lock of its own: WorldState calls it under
// the world's lock.
//
// A rank has several threads: its own, and one for each queue with a thread to which the communicator has given tasks.
// A thread is busy until its work is done: the rank's function has returned, or all tasks have run. A thread is stuck
// while it sleeps for an event that only one of these threads can cause: calls come from a rank's own thread, arrivals
// from that thread or its queue. So if every busy thread is stuck, none ever wakes; if one is not, it may wake the
// others. A thread that waits outside the communicator counts as busy, and no deadlock is detected then.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "braid/comm/queue.h"

namespace braid::comm::local {

// The reason why a thread sleeps. Other threads call its methods meanwhile.
class WaitReason {
 public:
  // Returns true if the thread waits for a rank that has neither arrived nor ended. The result may change from true to
  // false at any time, and never back.
  virtual bool hopeless() const = 0;
  virtual std::string description() const = 0;  // "barrier #3 on world (missing: rank 1, 2)"

 protected:
  ~WaitReason() = default;
};

// A sleeping thread: the rank's calling thread or, if `queue` is not null, the thread that runs the tasks of that
// queue.
struct BlockedThread {
  int rank;
  const Queue* queue;
  const WaitReason* awaited;
};

class DeadlockDetector {
 public:
  explicit DeadlockDetector(int num_ranks) : ranks_(num_ranks) {}

  void begin(int rank);  // the calling thread is the rank's own
  void leave(int rank);  // the rank's thread makes no more calls
  void end(int rank);    // the rank's thread and its queues have no more tasks
  void add_task(int rank, const Queue* queue);
  void remove_task(int rank, const Queue* queue);
  void sleep(const BlockedThread& sleeper);
  void wake(const BlockedThread& sleeper);

  // Returns a sleeping rank if all busy threads are stuck; else -1.
  int standstill() const;
  // Returns "rank 0 waits for barrier #3 on world (missing: rank 1); rank 1 has ended".
  std::string text() const;

 private:
  struct RankThread {
    const Queue* queue;  // null: the rank's thread
    int tasks = 0;       // tasks not yet run; a rank's thread has one task
    const WaitReason* awaited = nullptr;
  };
  struct Rank {
    std::thread::id thread;
    bool ended = false;
    std::vector<RankThread> threads;
  };

  RankThread* thread_of(int rank, const Queue* queue);
  void change_tasks(RankThread& thread, int change);

  std::vector<Rank> ranks_;
  int num_busy_ = 0;      // number of threads with tasks
  int num_sleeping_ = 0;  // number of threads that sleep
};

}  // namespace braid::comm::local
