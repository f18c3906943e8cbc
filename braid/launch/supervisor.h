// Watches the processes of one host's ranks from their parent process. The supervisor collects how each rank ended,
// fails the world if one ends without an outcome, passes signals on, and kills ranks that do not end after a failure.
// It reads the activities of ranks from comm/rank_activity.h.
#pragma once

#include <poll.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/rank_board.h"
#include "braid/launch/forked_process.h"
#include "braid/launch/hang_detector.h"

namespace braid::launch {

// Receives signals through a descriptor, so that a thread can forward them to other processes. The signals are blocked
// in the thread that constructs the relay until the relay is destroyed. A signal that the thread had blocked before
// stays blocked, and the relay does not take it.
class SignalRelay {
 public:
  // Throws RunError if the system refuses.
  explicit SignalRelay(const std::vector<int>& signals);
  // Restores the thread's signal mask and raises the signals that were taken, with their usual effect on this process.
  // SIGTSTP is not raised here but in stop().
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // Returns a descriptor that is readable when a signal has arrived.
  int descriptor() const { return descriptor_; }
  // Returns the signals that have arrived since the last call.
  std::vector<int> take();
  // Gives SIGTSTP its usual effect on this process. Returns when the process is continued, or at once if it was not
  // stopped.
  void stop();
  // Called in a forked child: restores its signal mask and closes the descriptor.
  void leave_to_child();

 private:
  sigset_t before_;
  int descriptor_ = -1;
  std::vector<int> taken_;
};

class Supervisor;

// The supervisor's delegate. It connects the ranks of one host with the other hosts of a job, or watches for hung ranks
// if all ranks are on this host.
class SupervisorDelegate {
 public:
  virtual ~SupervisorDelegate() = default;

  // Adds descriptors for the supervisor to poll, beside its own. Returns the longest time to wait, in milliseconds.
  virtual int watch(std::vector<pollfd>& watched) const = 0;
  // Does all work that does not block. Called after every wait.
  virtual void advance(Supervisor& supervisor) = 0;
  // Returns true if the bytes that the rank at `place` has written so far contain its outcome.
  virtual bool has_outcome(Supervisor& supervisor, int place) = 0;
  // Called when the process of the rank at `place` has died without an outcome. Returns true if the world goes on
  // without the rank; otherwise the supervisor fails the world.
  virtual bool lets_go(Supervisor& supervisor, int place) { return false; }
  // Called about once a second with samples of this host's ranks, in the order in which they were started.
  virtual void look(Supervisor& supervisor, const std::vector<RankSample>& samples) = 0;
  // Returns true while the supervisor must continue even if no rank of this host runs any more.
  virtual bool has_work() const = 0;
  // Called in a forked child. Closes its copies of the delegate's descriptors.
  virtual void leave_to_child() = 0;
};

// The supervisor of one host's ranks. `place` is the index of a rank on the board; `rank` is its number in the world.
// The destructor kills the processes that still run.
class Supervisor {
 public:
  static constexpr double kSignSeconds = 1;  // time between two samples of the ranks

  // The supervisor's collaborators. All of them outlive it.
  struct Parts {
    comm::FailureState& failures;  // failure state of the world
    comm::RankBoard& board;        // board of the ranks that will be started
    SignalRelay& signals;
    SupervisorDelegate& delegate;
  };
  struct Patience {
    double grace_seconds;  // time from a failure until running ranks are killed
    double death_seconds =
        ForkedProcess::kDeathSeconds;  // time from SIGKILL until a rank that still runs is left behind
  };
  Supervisor(const Parts& parts, const Patience& patience) : parts_(parts), patience_(patience) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Forks the rank at the next place. Its process runs `life` (forked_process.h), which writes the rank's outcome to
  // the descriptor `line`. Throws RunError if the system refuses.
  void start(int rank, const std::function<void(int line)>& life);
  // Blocks until every rank has ended or is left behind, and the delegate's has_work() is false. A rank that ends
  // without an outcome fails the world.
  void run();
  // Returns the ranks that SIGKILL did not end, in words: rank, process, host, and the kernel function that it waits
  // in. Empty if there are none.
  const std::string& left_behind() const { return left_behind_; }

  int num_ranks() const { return static_cast<int>(ranks_.size()); }
  // Returns the bytes that the rank at `place` has written; cut short if it was killed while it wrote.
  const std::string& message(int place) const { return ranks_[place].process->received(); }
  // Writes `bytes` to the rank without blocking. If they do not fit into the stream's buffer, the world fails.
  void send(int place, const std::string& bytes);
  bool any_runs() const;
  // Returns true if the kernel is ending a rank that cannot be reaped yet.
  bool any_exits() const;
  // Reaps the ranks that have ended. One that ends without an outcome fails the world.
  void reap();
  // Fails the world because of the rank at `place`. The reason is `how`, with the rank's process, host and activity.
  void fail(int place, const std::string& how);
  // Returns, in words, the rank, its activity, and the time since the activity began.
  std::string state(int place) const;
  void kill(int place) const { ranks_[place].process->send(SIGKILL); }

 private:
  struct Rank {
    int rank;
    std::unique_ptr<ForkedProcess> process;
  };

  void leave_to_child();
  void sleep();
  void pass_on(int signal);
  void reap(int place);
  void kill_late();
  void leave_behind(Rank& rank);
  void look();
  RankSample signs_of(int place);
  void send(int signal);

  const Parts parts_;
  const Patience patience_;
  double looked_at_ = 0;  // time of the last sample of the ranks (now_seconds())
  std::vector<Rank> ranks_;
  double failed_at_ = -1;  // when the world was found to have failed (now_seconds()); -1: it has not
  std::string left_behind_;
};

}  // namespace braid::launch
