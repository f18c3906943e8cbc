// A rank's handle of a group of process ranks, made by launch/process_ranks.h.
// It issues what the rank asks for; checks are above it (checked_communicator.h), work and waiting elsewhere in this
// folder. What promises of communicator.h mean here:
//
//   * Operations move when their rank makes calls, waits or polls (progress_engine.h), not while it computes.
//   * A send is done when its bytes have left the tensor, whether or not the receiver has asked for them.
//   * That all ranks wait and none can go on is noticed at the deadline.
#pragma once

#include "braid/comm/checked_communicator.h"
#include "braid/comm/shm/progress_engine.h"

namespace braid::comm::shm {

class ProcessCommunicator final : public CheckedCommunicator {
 public:
  // The world's communicator of the calling process, which is rank progress->rank(). `queue` outlives this.
  static std::unique_ptr<ProcessCommunicator> of_world(std::shared_ptr<ProgressEngine> progress, Queue& queue);

  ProcessCommunicator(std::shared_ptr<ProgressEngine> progress, std::shared_ptr<const Group> group, int rank,
                      Queue& queue);
  ~ProcessCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name; }
  RankKind rank_kind() const override { return RankKind::Process; }
  RankActivity* activity() override { return &progress_->world().board().activity(progress_->rank()); }

  Work batch(std::span<const P2p> transfers) override;
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override;
  void abort(const std::string& why) override;

 private:
  Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) override;
  [[noreturn]] void refuse(const std::string& op, const std::string& why) const override;
  int world_rank() const { return group_->world_ranks[rank_]; }

  const std::shared_ptr<ProgressEngine> progress_;
  const std::shared_ptr<const Group> group_;
  const int rank_;
  const std::shared_ptr<CollectiveQueue> line_;
  int64_t next_number_ = 0;
};

}  // namespace braid::comm::shm
