// A collective over Gloo and the line of them that a group has: rounds are started in the order of the calls, as many
// as a window of bytes has room for, and end in any.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "braid/comm/gloo/gloo_round.h"
#include "braid/comm/gloo/gloo_sums.h"
#include "braid/comm/gloo/gloo_world.h"

namespace braid {

class GlooLine;

class GlooCollective final : public GlooOperation {
 public:
  GlooCollective(std::shared_ptr<GlooLine> line, int64_t number, const Call& call);

  // Read from `in`, written to `out`; kept alive until the collective is done. Before its arrival.
  void attach(const at::Tensor& in, const at::Tensor& out);

  std::string label() const override;
  GlooStall stall() const override;

 private:
  friend class GlooLine;

  const std::shared_ptr<GlooLine> line_;
  const int64_t number_;
  GlooTask task_;
  // Of the line, under its lock:
  int64_t next_round_ = 0, rounds_done_ = 0;
  std::map<int64_t, std::shared_ptr<GlooRound>> rounds_;  // started and not done
};

// Thread-safe.
class GlooLine final : public std::enable_shared_from_this<GlooLine> {
 public:
  struct Ways {
    GlooPost& post;
    GlooNews& news;
    GlooSumOrder sums;
    GlooSums::Connect connect;  // to the group's own engine
    std::function<void(const std::string& why)> failed;
  };

  GlooLine(std::shared_ptr<const GlooGroup> group, Ways ways);

  const std::shared_ptr<const GlooGroup>& group() const { return group_; }
  GlooSumOrder sums() const { return ways_.sums; }

  // Of the group's own engine. Nobody closes them before all ranks leave: a peer may not have got its last sum.
  bool has_connections() const;

  // The rank has arrived at its next collective.
  void add(std::shared_ptr<GlooCollective> collective);
  // Starts all rounds that have not been, whatever the window says.
  void start_all();
  // No collective is in flight, or none that can ever complete.
  bool idle() const;
  // After GlooPost::stop(): nothing touches a tensor any more, and what is not done never will be.
  void stop();

  GlooStall stall(const GlooCollective& collective) const;

 private:
  static constexpr int64_t kWindowBytes = 16 << 20;

  void advance();
  std::shared_ptr<GlooRound> next_round();
  void round_done(const std::shared_ptr<GlooCollective>& collective, int64_t number);
  void engine_sum(const at::Tensor& tensor, std::function<void()> done);
  void sums_failed(const std::string& why);
  at::Tensor scratch(int64_t bytes);
  GlooStall stall_of(const GlooCollective& collective) const;

  const std::shared_ptr<const GlooGroup> group_;
  const Ways ways_;
  mutable std::mutex mutex_;
  std::condition_variable advanced_;
  std::deque<std::shared_ptr<GlooCollective>> collectives_;  // not done
  int64_t in_flight_bytes_ = 0;                              // of scratch
  int next_tag_ = 0;                                         // of the next round
  bool advancing_ = false, start_all_ = false, stopped_ = false;
  std::vector<at::Tensor> scratches_;      // unused
  std::unique_ptr<GlooSums> engine_sums_;  // since they were first asked for
};

}  // namespace braid
