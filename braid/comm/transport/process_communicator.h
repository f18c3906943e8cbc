// The communicator of ranks that are processes, over any transport. It issues what the rank asks for; the rules of
// communicator.h are checked in checked_communicator.h.
#pragma once

#include "braid/comm/checked_communicator.h"
#include "braid/comm/transport/progress_engine.h"

namespace braid::comm::transport {

class ProcessCommunicator : public CheckedCommunicator {
 public:
  // Returns the communicator of the world. Collective with ReductionOrder::Measured: blocks and throws CommError as
  // measure_own_sums() does. Destroying it is the end of the rank (ProgressEngine::leave()); its groups
  // are destroyed before. REQUIRES: `queue` outlives it.
  static std::unique_ptr<Communicator> of_world(std::unique_ptr<Transport> transport, const RankOptions& options,
                                                Queue& queue);

  ProcessCommunicator(std::shared_ptr<ProgressEngine> engine, std::shared_ptr<const Group> group, Queue& queue);

  int rank() const override { return group_->rank; }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name; }
  RankKind rank_kind() const override { return RankKind::Process; }
  RankActivity* activity() override { return engine_->options().activity; }
  int64_t bytes_across_hosts() const override { return engine_->bytes_across_hosts(); }

  Work batch(std::span<const P2p> transfers) override;
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override;
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override;
  void abort(const std::string& why) override { engine_->fail(why); }

 private:
  std::shared_ptr<const Group> split_group(int colour, int key, std::string name);
  Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) override;
  [[noreturn]] void refuse(const std::string& op, const std::string& why) const override;

  const std::shared_ptr<ProgressEngine> engine_;
  const std::shared_ptr<const Group> group_;
  const std::shared_ptr<CollectiveQueue> collectives_;
};

}  // namespace braid::comm::transport
