// Common code of ranks that run in their own process, for worlds of every kind.
#pragma once

#include <functional>
#include <string>

#include "braid/comm/failure_state.h"
#include "braid/launch/launcher.h"
#include "braid/launch/rank_outcome.h"

namespace braid::launch {

class RankProcess {
 public:
  // REQUIRES: `failures` outlives this.
  RankProcess(comm::FailureState& failures, int rank) : failures_(failures), rank_(rank) {}

  // Runs a step. The first exception of any step fails the world and becomes the outcome.
  template <class Step>
  void guarded(const Step& step) {
    try {
      step();
    } catch (...) {
      failures_.fail({rank_, rank_, RankOutcome::text_of_thrown()});
      if (thrown_.empty()) thrown_ = RankOutcome::thrown();
    }
  }
  bool has_failed() const { return !thrown_.empty(); }
  std::string outcome(std::string value) const {
    return has_failed() ? thrown_ : RankOutcome::returned(std::move(value));
  }

 private:
  comm::FailureState& failures_;
  const int rank_;
  std::string thrown_;
};

// Prepares this process to run `rank`, one of `num_ranks_here` on this host: sets its name and its LibTorch threads.
// Returns the rank's queue.
std::unique_ptr<Queue> enter_rank(int rank, int num_ranks_here, const LaunchOptions& options);

// Ends the process of a rank after its function: flushes its output, writes `last` to the descriptor `line`, and
// exits.
[[noreturn]] void leave_rank(int line, const std::string& last) noexcept;

// Blocks until all `bytes` are written, or until the other end accepts no more.
void write_all(int line, const std::string& bytes);

void flush_all();

// Returns the signals to the caller that are passed on to ranks.
std::vector<int> relayed(SignalsTo to);

// Throws ConfigError, about "process ranks", if this process cannot fork `num_ranks` processes (process_ranks.h).
void refuse_what_cannot_fork(int num_ranks);

}  // namespace braid::launch
