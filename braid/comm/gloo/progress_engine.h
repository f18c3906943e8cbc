// One rank's side of a world over Gloo: its connections, the lines of its groups, and waiting.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braid/comm/gloo/collective.h"
#include "braid/comm/gloo/make_gloo_world.h"
#include "braid/comm/gloo/point_to_point.h"

namespace braid::comm::gloo {

// Thread-safe.
class ProgressEngine {
 public:
  // Collective: blocks until all ranks have come. Throws CommError.
  explicit ProgressEngine(const GlooOptions& options);
  ~ProgressEngine();
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  RankActivity* activity() const { return options_.activity; }
  const std::shared_ptr<const Group>& world() const { return world_; }
  MatchTable& post() { return *post_; }
  Notifier& news() { return news_; }
  int64_t next_group_id();  // of no other group of the world

  std::shared_ptr<CollectiveQueue> open(std::shared_ptr<const Group> group);

  // Blocks until `operation` is done. Throws CommError when the world has failed, also when the operation had been done
  // before; by then nothing touches its tensors.
  void wait(const Operation& operation, double issued_seconds);
  // True when wait() would return or throw at once.
  bool poll(const Operation& operation);

  void fail(const std::string& why);
  // Throws CommError with the world's first failure, which there is or is about to be.
  [[noreturn]] void raise(const std::string& op, double elapsed_seconds);

  // The rank makes no more calls. Returns when what all ranks have issued is done or can never be done, or when the
  // world has failed; then all connections are closed.
  void leave();

 private:
  using OnPeer = std::function<void(int world_rank)>;
  std::unique_ptr<Engine> connect_world();
  std::unique_ptr<Engine> connect_sums(const Group& group) const;
  void meet(const Group& group, const std::string& prefix) const;
  std::unique_ptr<Engine> connect(const Group& group, const std::string& name, const OnPeer& on_peer) const;
  void closed(const Group& group, const std::string& why);
  void stop();
  bool idle() const;
  std::vector<std::shared_ptr<CollectiveQueue>> lines() const;
  void report_late(const Stall& stall) const;

  const GlooOptions options_;
  const std::shared_ptr<const Group> world_;
  std::shared_ptr<Listener> listener_;
  Notifier news_;
  std::unique_ptr<Engine> engine_;  // null in a world of one
  std::unique_ptr<MatchTable> post_;
  std::atomic<bool> stopping_{false};
  std::once_flag stopped_;
  std::atomic<int> num_groups_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<CollectiveQueue>> lines_;
};

}  // namespace braid::comm::gloo
