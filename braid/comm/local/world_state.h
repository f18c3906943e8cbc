// The state that all ranks of one world share: its failure, the ranks that have ended, the deadline of waits. Every
// wait of the world's threads passes through it, so a failure wakes all of them. A deadlock, in which no running thread
// is left that could wake another, becomes a failure.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "braid/comm/failure_state.h"
#include "braid/comm/local/deadlock_detector.h"

namespace braid::comm::local {

// Callbacks for a world's first failure. Thread-safe.
class FailureListeners {
 public:
  using Listener = std::function<void(const Failure&)>;
  using Place = std::list<Listener>::iterator;

  // Registers `listener` for notify(). If notify() was called before, add() calls `listener` at once.
  Place add(Listener listener);
  // Removes a listener. After the return it is not being called and never will be.
  void remove(Place place);
  // Calls every listener. REQUIRES: called at most once.
  void notify(const Failure& failure);

 private:
  std::mutex mutex_;  // held while listeners are called
  std::optional<Failure> failure_;
  std::list<Listener> listeners_;
};

// The threads that sleep for one operation. wake() costs one load if no thread sleeps.
class WaitQueue {
 public:
  void wake() {
    if (sleepers_.load() == 0) return;
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

 private:
  friend class WorldState;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> sleepers_{0};
};

// The shared state. Thread-safe. Owned by shared_ptr.
class WorldState : public std::enable_shared_from_this<WorldState> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Options {
    double deadline_seconds;
    int spin_turns;  // number of checks of a condition before a thread sleeps on it
  };

  WorldState(int num_ranks, Options options);

  bool failed() const { return failed_.load(); }
  // Sets the failure and wakes every sleeper. The first call wins.
  void fail(Failure failure);
  std::optional<Failure> failure() const;
  // Calls `listener` with the world's first failure, on the thread that causes it, or at once if the world has failed
  // already. Destroying the result ends the registration, and waits for a call in progress. REQUIRES: `listener`
  // returns soon, throws nothing, and neither adds nor removes registrations.
  std::shared_ptr<void> on_failure(FailureListeners::Listener listener);
  // Throws CommError with the first failure. `op` is the operation that the caller waited for, and
  // `calls` are its last calls in that group.
  [[noreturn]] void raise(std::string op, double elapsed_seconds, std::vector<std::string> calls = {}) const;

  // Registers the calling thread as that of world rank `rank`.
  void begin(int rank);
  // Reports that the rank's thread makes no more calls. Its queue may still have tasks.
  void leave(int rank);
  // Reports that world rank `rank` takes part in no further operation. All its arrivals are visible to other threads
  // before the end is.
  void end(int rank);
  bool any_ended() const { return any_ended_.load(); }
  bool ended(int rank) const { return ended_[rank].load(); }

  // Counts a task of `queue` as not yet run while a copy of the result lives. Until then there is no deadlock, because
  // the task may still complete what others wait for.
  std::shared_ptr<void> queued(int rank, const Queue& queue);

  const Options& options() const { return options_; }
  // Returns the end of a wait that begins now.
  Time deadline() const;

  // Sleeps until `ready()` is true, the world fails, or `until` is reached. Returns false only in the last case.
  // `ready` is called under the gate's lock. Code that makes `ready()` true must do so by a sequentially consistent
  // store followed by gate.wake(). If `sleeper` is the last thread that could have woken others, the world fails.
  template <class Ready>
  bool sleep(WaitQueue& gate, Time until, const BlockedThread& sleeper, const Ready& ready) {
    Enlisted enlisted(*this, gate, sleeper);
    std::unique_lock lock(gate.mutex_);
    gate.sleepers_.fetch_add(1);
    bool holds = gate.changed_.wait_until(lock, until, [&] { return failed() || ready(); });
    gate.sleepers_.fetch_sub(1);
    return holds;
  }

 private:
  // A registration of a sleeping thread and its gate with the world, for the time of the sleep. Lock order: the world's
  // mutex, then a gate's.
  class Enlisted {
   public:
    Enlisted(WorldState& world_state, WaitQueue& gate, const BlockedThread& sleeper);
    ~Enlisted();

   private:
    WorldState& world_state_;
    WaitQueue& gate_;
    const BlockedThread sleeper_;
  };

  // Applies `change` to `roster_`, then fails the world if it is deadlocked.
  template <class Change>
  void enter(const Change& change);
  void wake_all();

  const Options options_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> any_ended_{false};
  std::vector<std::atomic<bool>> ended_;
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
  std::vector<WaitQueue*> gates_;
  FailureListeners listeners_;
  DeadlockDetector roster_;
};

}  // namespace braid::comm::local
