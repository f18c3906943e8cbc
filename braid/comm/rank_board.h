// Memory shared by the processes of one host's ranks and their supervisor: the first failure, and the activity of each
// rank. It is mapped before they are forked.
#pragma once

#include "braid/comm/failure_state.h"
#include "braid/comm/rank_activity.h"

namespace braid::comm {

// Thread-safe; each process has a copy of this object.
class RankBoard final : public FailureState {
 public:
  // Throws IoError when the memory cannot be had.
  explicit RankBoard(int num_ranks);
  ~RankBoard() override;
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  int num_ranks() const { return num_ranks_; }

  void fail(const Failure& failure) override { say(failure); }
  // The same; whether it was the first.
  bool say(const Failure& failure);
  bool failed() const;
  std::optional<Failure> failure() const override;

  RankActivity& activity(int rank) { return activities_[rank]; }

 private:
  struct FailureWords;

  const int num_ranks_;
  FailureWords* failure_ = nullptr;  // the mapping begins here
  RankActivity* activities_ = nullptr;
};

}  // namespace braid::comm
