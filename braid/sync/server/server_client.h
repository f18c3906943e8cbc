// A worker's side of a parameter server: one object per worker, used by one thread. It speaks to all servers and makes
// them one; it knows no model.
//
//   ServerClient client(shares, rule, options, channel);    joins
//   each step:  client.pull(wanted);  ... gradients ...;  client.push(gradient, lr);
//   client.leave();
//
// Throws CommError when a server is gone, when it has given up a worker (OnRankFailure::Fail) or this one, and at the
// deadline.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "braid/comm/channel.h"
#include "braid/sync/server/consistency.h"
#include "braid/sync/server/protocol.h"
#include "braid/sync/server/row_sum.h"
#include "braid/sync/server/staleness_histogram.h"

namespace braid {

struct ClientOptions {
  Consistency consistency = Consistency::Bsp;  // as the servers'
  int64_t staleness = 0;                       // as the servers', of Ssp
  int push_every = 1;  // steps whose gradients are added up for a push; Dean et al. (2012), section 4.1: n_push
  int pull_every = 1;  // steps that use the same flat parameters, at most: n_fetch
  double deadline_seconds = 600;
  double retry_seconds = 0;  // unanswered requests are sent again after so long; 0: the transport loses nothing
};

struct ClientReport {
  int64_t num_pulls = 0, num_pushes = 0, num_resent = 0;
  double waiting_seconds = 0;    // for answers
  StalenessHistogram staleness;  // of this worker's pushes, one count per server and push
  int64_t last_staleness = 0;    // the last of them
  int64_t bytes_sent = 0, bytes_received = 0;
};

class ServerClient {
 public:
  // Servers are endpoints 0, 1, ... of the channel, which outlives this. Blocks until all have let this worker in.
  ServerClient(const KeyShares& shares, const optim::ElementRule& rule, const ClientOptions& options, Channel& channel);

  // The pushes that this worker's clock has seen, of one that joined late those that it missed included.
  int64_t clock() const { return clock_; }

  enum class Freshness { AsConfigured, Newest };
  // Before a step. `wanted.dense`, where it is defined, is the worker's copy of the flat parameters; it is brought up
  // to date when pull_every steps have used it or consistency forbids to use it longer (Ssp: Ho et al. (2013), section
  // 3.1). The rows whose index is given are read always: their values become new tensors. Returns whether the flat
  // parameters are new. Blocks as consistency asks for. Newest: flat parameters too, whatever the interval.
  bool pull(KeyedTensors& wanted, Freshness freshness = Freshness::AsConfigured);
  // After a step: its gradients, of which rows may be named in any order and more than once. Every push_every steps
  // they are sent, added up, and the clock ticks. Does not wait.
  void push(const KeyedTensors& gradient, double lr);
  // Sends what was added up and not sent, if any, with the last step's rate. The next push_every steps count from here.
  void push_rest();
  void drop_rest();  // forgets it instead: a gradient of parameters that are no more

  // All servers' state as one, and back. No worker may push meanwhile: a barrier among workers comes before and after.
  sync::server::ShardState fetch();
  void store(const sync::server::ShardState& state);

  // Pushes the rest first. Every push is applied or waits for its round. Nothing may be called afterwards.
  void leave();

  const ClientReport& report() const { return report_; }

 private:
  using Requests = std::vector<std::optional<ChannelMessage>>;  // by server
  // Reads the answer of a server; false where it is not whole or not the one.
  using Reader = std::function<bool(int server, const sync::server::Envelope& fields, const ChannelMessage& message)>;

  void join();
  Requests to_all(sync::server::RequestKind kind, int64_t number) const;
  void ask(const char* what, Requests requests, sync::server::AnswerKind expected, const Reader& read);
  template <class Done>
  void receive_until(const char* what, const Done& done);
  void handle(const char* what, int server, const ChannelMessage& message);
  void server_closed(const char* what, int server);
  Delivery send(int server, ChannelMessage message);
  void send_again();
  [[noreturn]] void fail(const char* what, int rank, const std::string& why) const;

  bool due() const;
  Requests pull_requests(const KeyedTensors& wanted, bool dense) const;
  bool read_pulled(int server, const ChannelMessage& message, KeyedTensors& into) const;
  void accumulate(const KeyedTensors& gradient);
  void send_push(const at::Tensor& dense);
  KeyedTensors part_of(const at::Tensor& dense, const std::vector<TableRows>& rows, int server) const;

  const KeyShares shares_;
  const optim::ElementRule rule_;
  const ClientOptions options_;
  Channel& channel_;
  const int num_servers_;
  const int64_t session_;
  int64_t clock_ = 0;
  int64_t next_request_ = 1;
  std::vector<int64_t> version_, slowest_;  // by server, of the last pull of flat parameters
  int64_t steps_since_pull_ = 0;
  bool has_pulled_ = false;

  at::Tensor accumulated_;  // of flat gradients; empty while push_every is 1
  std::vector<sync::server::RowSum> row_sums_;
  int steps_since_push_ = 0;
  double lr_ = 0;  // of the last step

  Requests outstanding_;
  sync::server::AnswerKind expected_ = sync::server::AnswerKind::Joined;
  const Reader* read_ = nullptr;
  std::vector<std::map<int64_t, ChannelMessage>> unacked_;  // by server and sequence; empty where nothing is lost
  bool leaving_ = false;
  ClientReport report_;
};

}  // namespace braid
