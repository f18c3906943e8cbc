// Memory shared by the rank processes of one host and their supervisor. It holds the first failure and the activity of
// each rank, and is mapped before the ranks are forked.
#pragma once

#include "braid/comm/failure_state.h"
#include "braid/comm/rank_activity.h"

namespace braid::comm {

// The mapped memory. Thread-safe. Each process has a copy of this object.
class RankBoard final : public FailureState {
 public:
  // Throws IoError if the memory cannot be mapped.
  explicit RankBoard(int num_ranks);
  ~RankBoard() override;
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  int num_ranks() const { return num_ranks_; }

  void fail(const Failure& failure) override { set_first(failure); }
  // Does the same as fail(). Returns true if this failure was the first.
  bool set_first(const Failure& failure);
  bool failed() const;
  std::optional<Failure> failure() const override;

  RankActivity& activity(int rank) { return activities_[rank]; }

 private:
  struct FailureRecord;

  const int num_ranks_;
  FailureRecord* failure_ = nullptr;  // the mapping begins here
  RankActivity* activities_ = nullptr;
};

}  // namespace braid::comm
