// A rank's handle of a group of thread ranks. It issues the rank's calls. checked_communicator.h checks them first;
// matching, work and waiting are elsewhere in this folder.
#pragma once

#include "braid/comm/checked_communicator.h"
#include "braid/comm/local/group.h"

namespace braid::comm::local {

class ThreadCommunicator final : public CheckedCommunicator {
 public:
  // REQUIRES: `queue` outlives this.
  ThreadCommunicator(std::shared_ptr<Group> group, int rank, Queue& queue);

  int rank() const override { return rank_; }
  int size() const override { return group_->members().size(); }
  const std::string& name() const override { return group_->members().name; }
  RankKind rank_kind() const override { return RankKind::Thread; }

  Work batch(std::span<const P2p> transfers) override;
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override;
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override;
  void abort(const std::string& why) override;

 private:
  Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) override;
  // Returns the `object` of the group's rank 0, which all ranks own. Collective, blocks.
  std::shared_ptr<void> share(std::shared_ptr<void> object);
  [[noreturn]] void refuse(const std::string& op, const std::string& why) const override;

  const std::shared_ptr<Group> group_;
  const int rank_;
};

}  // namespace braid::comm::local
