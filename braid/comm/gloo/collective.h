// A collective over Gloo and the line of them that a group has: rounds are started in the order of the calls, as many
// as a window of bytes has room for, and end in any.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "braid/comm/gloo/engine_all_reduce.h"
#include "braid/comm/gloo/make_gloo_world.h"
#include "braid/comm/gloo/round.h"

namespace braid::comm::gloo {

class CollectiveQueue;

class Collective final : public Operation {
 public:
  Collective(std::shared_ptr<CollectiveQueue> line, int64_t number, const Call& call);

  // Read from `in`, written to `out`; kept alive until the collective is done. Before its arrival.
  void attach(const at::Tensor& in, const at::Tensor& out);

  std::string label() const override;
  Stall stall() const override;

 private:
  friend class CollectiveQueue;

  const std::shared_ptr<CollectiveQueue> line_;
  const int64_t number_;
  RoundTask task_;
  // Of the line, under its lock:
  int64_t next_round_ = 0, rounds_done_ = 0;
  std::map<int64_t, std::shared_ptr<Round>> rounds_;  // started and not done
};

// Thread-safe.
class CollectiveQueue final : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  struct Ways {
    MatchTable& post;
    Notifier& news;
    ReductionOrder sums;
    EngineAllReduce::Connect connect;  // to the group's own engine
    std::function<void(const std::string& why)> failed;
  };

  CollectiveQueue(std::shared_ptr<const Group> group, Ways ways);

  const std::shared_ptr<const Group>& group() const { return group_; }
  ReductionOrder sums() const { return ways_.sums; }

  // Of the group's own engine. Nobody closes them before all ranks leave: a peer may not have got its last sum.
  bool has_connections() const;

  // The rank has arrived at its next collective.
  void add(std::shared_ptr<Collective> collective);
  // Starts all rounds that have not been, whatever the window says.
  void start_all();
  // No collective is in flight, or none that can ever complete.
  bool idle() const;
  // After MatchTable::stop(): nothing touches a tensor any more, and what is not done never will be.
  void stop();

  Stall stall(const Collective& collective) const;

 private:
  static constexpr int64_t kWindowBytes = 16 << 20;

  void advance();
  std::shared_ptr<Round> next_round();
  void round_done(const std::shared_ptr<Collective>& collective, int64_t number);
  void engine_sum(const at::Tensor& tensor, std::function<void()> done);
  void sums_failed(const std::string& why);
  at::Tensor scratch(int64_t bytes);
  Stall stall_of(const Collective& collective) const;

  const std::shared_ptr<const Group> group_;
  const Ways ways_;
  mutable std::mutex mutex_;
  std::condition_variable advanced_;
  std::deque<std::shared_ptr<Collective>> collectives_;  // not done
  int64_t in_flight_bytes_ = 0;                          // of scratch
  int next_tag_ = 0;                                     // of the next round
  bool advancing_ = false, start_all_ = false, stopped_ = false;
  std::vector<at::Tensor> scratches_;             // unused
  std::unique_ptr<EngineAllReduce> engine_sums_;  // since they were first asked for
};

}  // namespace braid::comm::gloo
