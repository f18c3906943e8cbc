// Watches the processes of one host's ranks from their parent: collects how each ended, fails the world when one ends
// without a result, passes signals on, and leaves no process behind. What they do it knows only in their own words
// (comm/rank_activity.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/rank_board.h"
#include "braid/launch/forked_process.h"
#include "braid/launch/signal_relay.h"
#include "braid/launch/supervisor_delegate.h"

namespace braid::launch {

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
    SupervisorDelegate& surroundings;
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
  // Returns when all have ended or are left behind, and the surroundings wait for nothing. A rank that ends without
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
