// Detects a standstill of a world: what every rank does or waits for, so that it is known at once when all wait for
// each other and none can ever go on.
// It knows threads and queues, not operations; it has no lock of its own: WorldState calls it under the world's.
//
// A rank has lanes: its thread, and every queue with a thread of its own that the communicator has given tasks. A lane
// is busy until its work is done (the rank's function has returned, all tasks have run), and stuck while it sleeps for
// something that only a lane can bring. Lanes alone bring things: calls come from the rank's thread, arrivals from it
// or from its queue. So when every busy lane is stuck, none ever wakes; while one is not, it may wake the others.
// Other threads are not counted. A lane that waits outside the communicator counts as busy, so no standstill is seen.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "braid/comm/queue.h"

namespace braid::comm::local {

// The reason why a thread sleeps. Other threads call it meanwhile.
class WaitReason {
 public:
  // True while it waits for a rank that has neither arrived nor ended. It turns from true to false at any time, and
  // never back.
  virtual bool hopeless() const = 0;
  virtual std::string wish() const = 0;  // "barrier #3 on world (missing: rank 1, 2)"

 protected:
  ~WaitReason() = default;
};

// A sleeping thread: the calling one or, if `queue` is not null, the one that runs the tasks of that queue.
struct BlockedThread {
  int rank;
  const Queue* queue;
  const WaitReason* awaited;
};

class DeadlockDetector {
 public:
  explicit DeadlockDetector(int num_ranks) : ranks_(num_ranks) {}

  void begin(int rank);  // the calling thread is the rank's own
  void leave(int rank);  // it makes no more calls
  void end(int rank);    // nor does any of the rank's queues have a task
  void add_task(int rank, const Queue* queue);
  void remove_task(int rank, const Queue* queue);
  void sleep(const BlockedThread& sleeper);
  void wake(const BlockedThread& sleeper);

  // A sleeping rank, when all busy lanes are stuck; else -1.
  int standstill() const;
  // "rank 0 waits for barrier #3 on world (missing: rank 1); rank 1 has ended".
  std::string text() const;

 private:
  struct Lane {
    const Queue* queue;  // null: the rank's thread
    int tasks = 0;       // not yet run; the thread has one
    const WaitReason* awaited = nullptr;
  };
  struct Rank {
    std::thread::id thread;
    bool ended = false;
    std::vector<Lane> lanes;
  };

  Lane* lane_of(int rank, const Queue* queue);
  void change_tasks(Lane& lane, int change);

  std::vector<Rank> ranks_;
  int num_busy_ = 0;      // lanes with tasks
  int num_sleeping_ = 0;  // lanes with something awaited
};

}  // namespace braid::comm::local
