// A rank's handle of a group of thread ranks.
// It checks what the rank asks for and issues it; matching, work and waiting are elsewhere in this folder.
#pragma once

#include "braid/comm/communicator.h"
#include "braid/comm/local/group.h"

namespace braid {

class LocalCommunicator final : public Communicator {
 public:
  // `queue` outlives this.
  LocalCommunicator(std::shared_ptr<Group> group, int rank, Queue& queue);

  int rank() const override { return rank_; }
  int size() const override { return group_->members().size(); }
  const std::string& name() const override { return group_->members().name; }
  Queue& queue() override { return queue_; }

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override;
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override;
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override;
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override;
  Work broadcast(const at::Tensor& tensor, int root) override;
  Work barrier() override;
  Work batch(std::span<const P2p> transfers) override;
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override;
  void abort(const std::string& why) override;

 private:
  Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out);
  void require(bool holds, const char* op, const std::string& rule) const;
  void require_usable(const at::Tensor& tensor, const char* op) const;
  void require_chunks(const at::Tensor& whole, const at::Tensor& chunk, const char* op) const;

  const std::shared_ptr<Group> group_;
  const int rank_;
  Queue& queue_;
  const bool identity_;  // nobody to talk to, and no queue to be behind
  int64_t next_number_ = 0;
};

}  // namespace braid
