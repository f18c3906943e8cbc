// One rank's side of a world over Gloo: its connections, the lines of its groups, and waiting.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braid/comm/gloo/gloo_collective.h"
#include "braid/comm/gloo/gloo_message.h"
#include "braid/comm/gloo/gloo_world.h"

namespace braid {

// Thread-safe.
class GlooRank {
 public:
  // Collective: blocks until all ranks have come. Throws CommError.
  explicit GlooRank(const GlooOptions& options);
  ~GlooRank();
  GlooRank(const GlooRank&) = delete;
  GlooRank& operator=(const GlooRank&) = delete;

  RankActivity* activity() const { return options_.activity; }
  const std::shared_ptr<const GlooGroup>& world() const { return world_; }
  GlooPost& post() { return *post_; }
  GlooNews& news() { return news_; }
  int64_t next_group_id();  // of no other group of the world

  std::shared_ptr<GlooLine> open(std::shared_ptr<const GlooGroup> group);

  // Blocks until `operation` is done. Throws CommError when the world has failed, also when the operation had been done
  // before; by then nothing touches its tensors.
  void wait(const GlooOperation& operation, double issued_seconds);
  // True when wait() would return or throw at once.
  bool poll(const GlooOperation& operation);

  void fail(const std::string& why);
  // Throws CommError with the world's first failure, which there is or is about to be.
  [[noreturn]] void raise(const std::string& op, double elapsed_seconds);

  // The rank makes no more calls. Returns when what all ranks have issued is done or can never be done, or when the
  // world has failed; then all connections are closed.
  void leave();

 private:
  using OnPeer = std::function<void(int world_rank)>;
  std::unique_ptr<GlooEngine> connect_world();
  std::unique_ptr<GlooEngine> connect_sums(const GlooGroup& group) const;
  void meet(const GlooGroup& group, const std::string& prefix) const;
  std::unique_ptr<GlooEngine> connect(const GlooGroup& group, const std::string& name, const OnPeer& on_peer) const;
  void closed(const GlooGroup& group, const std::string& why);
  void stop();
  bool idle() const;
  std::vector<std::shared_ptr<GlooLine>> lines() const;
  void report_late(const GlooStall& stall) const;

  const GlooOptions options_;
  const std::shared_ptr<const GlooGroup> world_;
  std::shared_ptr<GlooListener> listener_;
  GlooNews news_;
  std::unique_ptr<GlooEngine> engine_;  // null in a world of one
  std::unique_ptr<GlooPost> post_;
  std::atomic<bool> stopping_{false};
  std::once_flag stopped_;
  std::atomic<int> num_groups_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<GlooLine>> lines_;
};

}  // namespace braid
