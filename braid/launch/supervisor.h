// Watches the processes of one host's ranks from their parent: collects how each ended, fails the world when one ends
// without a result, passes signals on, and leaves no process behind. It learns what they do from comm/rank_activity.h.
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

// SIGTERM and the signals by which a terminal ends or stops a program, as a descriptor to read from, for a thread that
// passes them on to other processes.

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

// The supervisor's delegate: it connects the ranks of one host with the other hosts of a job, or does nothing where all
// ranks are on this host.

class Supervisor;

class SupervisorDelegate {
 public:
  virtual ~SupervisorDelegate() = default;

  // Adds descriptors that the supervisor is to wait for, beside its own; how long at most, in milliseconds.
  virtual int watch(std::vector<pollfd>& watched) const = 0;
  // Does all work that does not block; called after every wait.
  virtual void advance(Supervisor& supervisor) = 0;
  // Returns true if the bytes that the rank of a place has written so far contain its outcome.
  virtual bool tells_end(Supervisor& supervisor, int place) = 0;
  // About once a second: what is seen of this host's ranks, in the order they were started.
  virtual void look(Supervisor& supervisor, const std::vector<RankSample>& signs) = 0;
  // Returns true while there is something to wait for although no rank of this host runs any more.
  virtual bool goes_on() const = 0;
  // In a forked child: closes its copies of descriptors.
  virtual void leave_to_child() = 0;
};

// Its destructor kills the processes that still run. A rank's place is its number on the board, its rank that in the
// world.
class Supervisor {
 public:
  static constexpr double kSignSeconds = 1;  // between two looks at signs of progress

  // The supervisor's collaborators. All of them outlive it.
  struct Parts {
    comm::FailureState& fate;  // of the world
    comm::RankBoard& board;    // of the ranks that will be started
    SignalRelay& signals;
    SupervisorDelegate& delegate;
  };
  struct Patience {
    double grace_seconds;                                 // ranks that live on so long after a failure are killed
    double death_seconds = ForkedProcess::kDeathSeconds;  // ranks that live on so long after that are left behind
  };
  Supervisor(const Parts& parts, const Patience& patience) : parts_(parts), patience_(patience) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Forks the rank of the next place. `life` is its life (forked_process.h); it writes to its line how it ended. Throws
  // RunError.
  void start(int rank, const std::function<void(int line)>& life);
  // Returns when all have ended or are left behind, and the delegate waits for nothing. A rank that ends without
  // saying how fails the world.
  void run();
  // The ranks that SIGKILL did not end, in words: rank, process, host, what it waits in. Empty: none.
  const std::string& left_behind() const { return left_behind_; }

  int num_ranks() const { return static_cast<int>(ranks_.size()); }
  // Returns the bytes that the rank of a place has written; cut short if it was killed meanwhile.
  const std::string& message(int place) const { return ranks_[place].process->heard(); }
  // Writes to its line, without waiting. What finds no room fails the world.
  void say(int place, const std::string& bytes);
  bool any_runs() const;
  // Fails the world because the rank has gone wrong: `how`, with its process and what it was doing.
  void fail(int place, const std::string& how);
  // The rank, its activity, for how long.
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
  void bury(int place);
  void kill_late();
  void leave_behind(Rank& rank);
  void look();
  RankSample signs_of(int place);
  void send(int signal);

  const Parts parts_;
  const Patience patience_;
  double looked_at_ = 0;  // at signs of progress, in seconds of the clock
  std::vector<Rank> ranks_;
  double failed_at_ = -1;  // seconds of the clock; -1: not seen to have failed
  std::string left_behind_;
};

}  // namespace braid::launch
