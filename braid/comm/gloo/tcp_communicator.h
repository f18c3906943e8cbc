// A rank's handle of a group over Gloo. It issues what the rank asks for; checks are above it
// (checked_communicator.h), work and waiting elsewhere in this folder.
#pragma once

#include "braid/comm/checked_communicator.h"
#include "braid/comm/gloo/progress_engine.h"

namespace braid::comm::gloo {

class TcpCommunicator : public CheckedCommunicator {
 public:
  // `queue` outlives this.
  TcpCommunicator(std::shared_ptr<ProgressEngine> self, std::shared_ptr<const Group> group, Queue& queue);

  int rank() const override { return group_->rank; }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name; }
  RankKind rank_kind() const override { return RankKind::Process; }
  RankActivity* activity() override { return self_->activity(); }

  Work batch(std::span<const P2p> transfers) override;
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override;
  void abort(const std::string& why) override;

 private:
  Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) override;
  [[noreturn]] void refuse(const std::string& op, const std::string& why) const override;

  const std::shared_ptr<ProgressEngine> self_;
  const std::shared_ptr<const Group> group_;
  const std::shared_ptr<CollectiveQueue> line_;
  int64_t next_number_ = 0;
};

}  // namespace braid::comm::gloo
