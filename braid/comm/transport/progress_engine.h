// One rank's side of a world of process ranks: its transport, the collectives of its groups, and waiting.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/comm/rank_activity.h"
#include "braid/comm/transport/collective.h"
#include "braid/comm/transport/match_table.h"
#include "braid/comm/transport/own_sums.h"
#include "braid/comm/world_options.h"

namespace braid::comm::transport {

// Thread-safe.
class ProgressEngine {
 public:
  // Throws RunError if the system has no threads for the transport.
  ProgressEngine(std::unique_ptr<Transport> transport, const RankOptions& options);
  ~ProgressEngine() { stop(); }
  ProgressEngine(const ProgressEngine&) = delete;
  ProgressEngine& operator=(const ProgressEngine&) = delete;

  const RankOptions& options() const { return options_; }
  Transport& transport() const { return *transport_; }
  MatchTable& table() { return table_; }
  OwnSumSizes& own_sums() { return own_sums_; }
  int64_t bytes_across_hosts() const { return table_.bytes_across_hosts(); }

  std::shared_ptr<CollectiveQueue> open(const std::shared_ptr<const Group>& group);

  // Blocks until `operation` is done. Throws CommError if the world has failed, even if the operation was done before;
  // by then nothing touches its tensors.
  void wait(const Operation& operation, double issued_seconds);
  // Returns true if wait() would return or throw at once.
  bool poll(const Operation& operation);

  void fail(const std::string& why) { options_.failures->fail({options_.rank, options_.rank, why}); }
  // Throws CommError with the world's first failure. `calls` are the last calls of this rank in the group of `op`.
  // REQUIRES: there is one, or is about to be.
  [[noreturn]] void raise(const std::string& op, double elapsed_seconds, std::vector<std::string> calls = {});

  // The rank makes no more calls. Returns when everything that all ranks have issued is done or can never be done, or
  // when the world has failed. Then the transport has stopped.
  void leave();

 private:
  void stop();
  bool idle() const;
  std::vector<std::shared_ptr<CollectiveQueue>> queues() const;
  void report_late(const Operation& operation, const Stall& stall);

  const RankOptions options_;
  const std::unique_ptr<Transport> transport_;
  MatchTable table_;
  OwnSumSizes own_sums_;  // written before the communicator of the world is the caller's
  std::once_flag stopped_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<CollectiveQueue>> queues_;
};

// Returns "(missing: rank 1, 2)".
std::string text_of_missing(const std::vector<int>& ranks);

// The Work of a rank: operations in flight, which the rank itself waits for.
class WaitedWork final : public Work::State, public std::enable_shared_from_this<WaitedWork> {
 public:
  using Parts = std::vector<std::shared_ptr<const Operation>>;

  WaitedWork(std::shared_ptr<ProgressEngine> engine, Parts parts);

  void order_before(Queue& queue) override;
  void wait_host() override;
  bool done() const override;

 private:
  const std::shared_ptr<ProgressEngine> engine_;
  const Parts parts_;
  const double issued_seconds_;
};

}  // namespace braid::comm::transport
