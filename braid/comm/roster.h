// The ranks of a group that may lose members: their collectives go over the ranks that are still there.
//
// Once begun, every collective is a round: each member sends its tensor to rank 0, which waits for all members whose
// process lives, and sends what it has, with the list of these members, to each of them. Rank 0 decides alone, so
// all members learn of a loss in the same round. A loss of rank 0 fails the world.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::comm {

// Thrown by a collective on all remaining members: since the round before, members were lost. The collective was not
// made. From then on rank() and size() count the remaining members.
class MembersLost final : public std::exception {
 public:
  const char* what() const noexcept override { return "members of the group were lost"; }
};

// Used by one thread.
class Roster {
 public:
  // `group` outlives this. Collective.
  explicit Roster(Communicator& group);

  // From here on collectives are rounds, and the loss of a rank other than 0 is allowed. Collective.
  void begin();
  bool begun() const { return begun_; }
  // Returns the remaining members, by their rank in `group`, ascending.
  const std::vector<int>& members() const { return members_; }
  // Returns the tensors of all members, in their order. Blocks. Throws MembersLost. REQUIRES: begun(). Collective over
  // the members.
  std::vector<at::Tensor> round(const at::Tensor& own);

 private:
  std::map<int, at::Tensor> collected(const at::Tensor& own);
  ChannelMessage answered(const std::map<int, at::Tensor>& by_rank);
  ChannelMessage received(const at::Tensor& own);

  Communicator& group_;
  std::unique_ptr<Channel> channel_;
  std::vector<int> members_;
  bool begun_ = false;
};

// A communicator of the members of a roster. Before the roster is begun it passes all calls to the communicator of the
// whole group, and splits of the whole group are of the same roster. Afterwards it makes blocking collectives on
// tensors of the CPU, and neither groups nor channels. A batch is collective then: its sends and receives match within
// one call of all members.
class RosterGroup final : public Communicator {
 public:
  RosterGroup(Roster& roster, Communicator& whole) : roster_(roster), whole_(whole) {}
  RosterGroup(Roster& roster, std::unique_ptr<Communicator> whole)
      : owned_(std::move(whole)), roster_(roster), whole_(*owned_) {}

  int rank() const override;
  int size() const override { return static_cast<int>(roster_.members().size()); }
  const std::string& name() const override { return whole_.name(); }
  RankKind rank_kind() const override { return whole_.rank_kind(); }
  RankActivity* activity() override { return whole_.activity(); }
  int64_t bytes_across_hosts() const override { return whole_.bytes_across_hosts(); }
  Queue& queue() override { return whole_.queue(); }

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override;
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override;
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override;
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override;
  Work broadcast(const at::Tensor& tensor, int root) override;
  Work barrier() override;
  Work batch(std::span<const P2p> transfers) override;
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override;
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override;
  void abort(const std::string& why) override { whole_.abort(why); }

 private:
  const std::unique_ptr<Communicator> owned_;
  Roster& roster_;
  Communicator& whole_;
};

}  // namespace braid::comm
