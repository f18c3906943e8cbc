// Collectives made of messages. Rounds start in the order of the calls, as many at a time as a limit of memory allows,
// and end in any order.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "braid/comm/transport/own_sums.h"
#include "braid/comm/transport/round.h"
#include "braid/comm/transport/two_levels.h"

namespace braid::comm::transport {

class MessageCollectives final : public CollectiveQueue, public std::enable_shared_from_this<MessageCollectives> {
 public:
  // REQUIRES: `table` and `own_sums` outlive this.
  MessageCollectives(std::shared_ptr<const Group> group, MatchTable& table, const OwnSumSizes& own_sums);
  ~MessageCollectives() override;

  Cut cut(const Call& call) const override;
  void add(std::shared_ptr<Collective> collective) override;
  void start_all() override;
  bool idle() const override;
  // A peer may not have received its part of the last sum yet, so the connections of own_ stay open.
  bool needed_by_peers() const override;
  Stall stall(const Collective& collective) const override;
  std::optional<Call> last_call_of(int world_rank) const override {
    return table_.last_call_of(group()->id, world_rank);
  }
  void stop() override;

 private:
  struct Entry {
    std::shared_ptr<Collective> collective;
    int64_t num_started = 0, num_done = 0;             // rounds
    std::map<int64_t, std::shared_ptr<Round>> rounds;  // started and not done
  };
  using EntryPtr = std::shared_ptr<Entry>;

  void advance();
  std::shared_ptr<Round> next_round();
  std::shared_ptr<Round> make_round(const EntryPtr& entry, int64_t number, int tag);
  int64_t scratch_bytes(const Collective& collective) const;
  void round_done(const EntryPtr& entry, int64_t number, const at::Tensor& scratch);
  void sum(const at::Tensor& tensor, std::function<void()> done);
  at::Tensor scratch(int64_t bytes);
  Stall stall_of(const Entry& entry) const;
  int another_rank() const;

  MatchTable& table_;
  const OwnSumSizes& own_sums_;
  const std::optional<NodeMembers> nodes_;
  mutable std::mutex mutex_;
  std::condition_variable advanced_;
  std::deque<EntryPtr> entries_;  // not done
  int64_t in_flight_bytes_ = 0;   // scratch of started rounds
  int next_tag_ = 0;              // of the next round
  bool advancing_ = false, start_all_ = false, stopped_ = false;
  std::vector<at::Tensor> scratches_;  // unused
  std::unique_ptr<OwnAllReduce> own_;  // null until the first sum
};

}  // namespace braid::comm::transport
