// One server of a parameter server. It answers the workers' requests according to its consistency (consistency.h,
// docs/parameter_server.md).
//
// The server applies each push of a worker exactly once and in the order of its sequence, however often it arrives. A
// worker that leaves or is lost no longer counts, but its pushes that have arrived still do.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "braid/comm/channel.h"
#include "braid/comm/rank_activity.h"
#include "braid/sync/run_request.h"
#include "braid/sync/server/consistency.h"
#include "braid/sync/server/protocol.h"
#include "braid/sync/server/sequence_book.h"
#include "braid/sync/server/server_shard.h"
#include "braid/sync/server/staleness_histogram.h"
#include "braid/sync/server/worker_clocks.h"

namespace braid {

struct ServerOptions {
  Consistency consistency = Consistency::Bsp;
  int64_t staleness = 0;                        // Ssp only
  OnRankFailure on_loss = OnRankFailure::Fail;  // Bsp only
  double deadline_seconds = 300;                // a worker for which another waits longer is lost
  int first_worker = 1;                         // endpoint of worker 0; the others follow
  int num_workers = 1;                          // maximum number of workers
  std::optional<int> num_initial = {};          // workers live from the start, beginning with worker 0; nullopt: all
  // Returns the memory that workers are told with each acknowledgement of a push.
  std::function<int64_t()> memory_bytes = [] { return int64_t{0}; };
  // Returns a request to the run, which the worker receives with the acknowledgement of its push. Called once for each.
  std::function<sync::RunRequest()> request = [] { return sync::RunRequest::GoOn; };
  comm::RankActivity* activity = nullptr;  // where answers are recorded; outlives the server; may be null
};

struct ServerReport {
  int64_t num_updates = 0;
  int64_t num_repeated = 0;  // pushes that had arrived before
  int64_t num_damaged = 0;   // malformed messages
  StalenessHistogram staleness;
  int64_t bytes_sent = 0, bytes_received = 0;
  std::vector<int> lost;  // workers, in the order of their loss
};

class ParameterServer {
 public:
  // REQUIRES: `shard` and `channel` outlive this.
  ParameterServer(const ServerOptions& options, sync::server::ServerShard& shard, Channel& channel);

  // Blocks until every worker has left or is lost, or this endpoint of the channel is closed. Then closes the channel.
  void serve();
  const ServerReport& report() const { return report_; }

 private:
  struct Push {
    KeyedTensors gradient;
    int64_t version;
    double lr;
  };
  struct Pull {
    int64_t number, clock;
    bool wants_dense;
    std::vector<TableRows> rows;
    Channel::Time until;
  };
  struct Worker {
    int64_t session = 0;
    bool started = false, left = false;
    sync::server::SequenceBook<Push> pushes;
    std::optional<Pull> waiting;
    int64_t stored = 0;  // number of the last Store request
  };

  // A copy of the state, which the answers to several workers share.
  struct Fetched {
    sync::server::ShardState state;
    int num_answers = 0;
  };

  void handle(int worker, const ChannelMessage& message);
  void dispatch(int worker, const sync::server::Envelope& request, const ChannelMessage& message);
  void join(int worker, int64_t session);
  void start(int worker, const sync::server::Envelope& request);
  void receive_push(int worker, const sync::server::Envelope& request, const ChannelMessage& message);
  void receive_pull(int worker, const sync::server::Envelope& request, const ChannelMessage& message);
  void store(int worker, const sync::server::Envelope& request, const ChannelMessage& message);
  void tell_clock(int worker, const sync::server::Envelope& request);
  void fetch(int worker, const sync::server::Envelope& request);
  int64_t take(int worker, Push push);
  void update(const std::vector<KeyedTensors>& gradients, double lr);
  void acknowledge(int worker, int64_t sequence, int64_t staleness);
  void end(int worker);
  void lose(int worker);

  void close_rounds();
  void answer_waiting();
  void give_up_on_silent();
  int64_t needed(const Pull& pull) const;
  bool may_read(int worker, const Pull& pull) const;
  Channel::Time next_deadline() const;
  void answer(int worker, sync::server::AnswerKind kind, sync::server::Envelope fields = {});
  void send(int worker, ChannelMessage message);
  Worker& at(int worker) { return workers_[static_cast<size_t>(worker)]; }

  const ServerOptions options_;
  sync::server::ServerShard& shard_;
  Channel& channel_;
  sync::server::WorkerClocks clocks_;
  std::vector<Worker> workers_;
  std::map<int64_t, std::map<int, Push>> rounds_;  // Bsp only: by clock, by worker
  std::optional<Fetched> fetched_;                 // until all live workers have it, or the state changes
  int64_t version_ = 0;                            // number of updates
  std::optional<int> failed_;                      // the worker whose loss failed the run
  ServerReport report_;
};

}  // namespace braid
