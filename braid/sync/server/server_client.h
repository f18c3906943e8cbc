// A worker's side of a parameter server: one object per worker, used by one thread. It hides the number of servers, and
// is independent of the model.
//
//   ServerClient client(shares, rule, options, channel);    joins
//   each step:  client.pull(wanted);  ... gradients ...;  client.push(gradient, lr);
//   client.leave();
//
// Throws CommError if a server has closed its channel, if a server has lost a worker (OnRankFailure::Fail) or this
// worker, or at the deadline.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "braid/comm/channel.h"
#include "braid/sync/run_request.h"
#include "braid/sync/server/consistency.h"
#include "braid/sync/server/protocol.h"
#include "braid/sync/server/row_sum.h"
#include "braid/sync/server/staleness_histogram.h"

namespace braid {

struct ClientOptions {
  Consistency consistency = Consistency::Bsp;  // same as the servers'
  int64_t staleness = 0;                       // Ssp only: same as the servers'
  int push_every = 1;  // steps whose gradients are accumulated for a push; Dean et al. (2012), section 4.1: n_push
  int pull_every = 1;  // maximum number of steps that use the same flat parameters: n_fetch
  double deadline_seconds = 600;
  double retry_seconds = 0;  // time until an unanswered request is sent again; 0: never, if no message is lost
};

struct ClientReport {
  int64_t num_pulls = 0, num_pushes = 0, num_resent = 0;
  double waiting_seconds = 0;    // time spent waiting for answers
  StalenessHistogram staleness;  // staleness of this worker's pushes: one count per server and push
  int64_t last_staleness = 0;    // staleness of the last push
  int64_t bytes_sent = 0, bytes_received = 0;
  std::vector<int64_t> server_bytes;  // by server: ServerOptions::memory_bytes() at its last acknowledgement
};

class ServerClient {
 public:
  // REQUIRES: servers are endpoints 0, 1, ... of `channel`, which outlives this. Blocks until all servers have accepted
  // this worker.
  ServerClient(const KeyShares& shares, const optim::ElementRule& rule, const ClientOptions& options, Channel& channel);

  // Returns the number of this worker's pushes, including those that it missed if it joined late.
  int64_t clock() const { return clock_; }

  enum class Freshness { AsConfigured, Newest };
  // Reads parameters before a step. `wanted.dense`, if defined, is the worker's copy of the flat parameters. It is
  // updated after pull_every steps have used it, or when consistency forbids further use (Ssp: Ho et al. (2013),
  // section 3.1). Newest always updates it. The rows whose index is given are always read into new tensors. Returns
  // true if the flat parameters are new. Blocks as long as consistency requires.
  bool pull(KeyedTensors& wanted, Freshness freshness = Freshness::AsConfigured);
  // Adds the gradients of a step. Rows may be named in any order and more than once. Every push_every steps, sends the
  // accumulated gradients and increases the clock. Does not wait.
  void push(const KeyedTensors& gradient, double lr);
  // Sends the accumulated gradients that are not sent yet, if any, with the last step's learning rate. The next
  // push_every steps count from here.
  void push_rest();
  void drop_rest();  // discards them instead: their parameters no longer exist

  // fetch() returns the state of all servers as one; store() sets it. REQUIRES: no worker pushes meanwhile, so a
  // barrier among workers comes before and after.
  sync::server::ShardState fetch();
  // Does the same into the tensors of `into`, which has all that the state has. The answer of one server is in memory
  // in addition.
  void fetch(sync::server::ShardState& into);
  void store(const sync::server::ShardState& state);

  // Returns how many pushes of a lost worker all servers have applied. A push that reached only some servers is not
  // counted. Blocks until all servers count the worker as lost. REQUIRES: it is lost.
  int64_t pushes_of_lost(int worker);

  // Pushes the accumulated gradients, and waits until every push is applied or waits for its round. No other call may
  // follow.
  void leave();

  const ClientReport& report() const { return report_; }
  // Returns the strongest request to the run that servers have passed on since the last call.
  sync::RunRequest take_request() { return std::exchange(request_, sync::RunRequest::GoOn); }

 private:
  using Requests = std::vector<std::optional<ChannelMessage>>;  // by server
  // Reads the answer of a server; returns false if it is malformed or not the expected one.
  using Reader = std::function<bool(int server, const sync::server::Envelope& fields, const ChannelMessage& message)>;

  void join();
  Requests to_all(sync::server::RequestKind kind, int64_t number) const;
  Requests to_one(int server, sync::server::RequestKind kind) const;
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

  at::Tensor accumulated_;  // accumulated flat gradients; undefined while push_every is 1
  std::vector<sync::server::RowSum> row_sums_;
  int steps_since_push_ = 0;
  double lr_ = 0;  // learning rate of the last step

  Requests outstanding_;
  sync::server::AnswerKind expected_ = sync::server::AnswerKind::Joined;
  const Reader* read_ = nullptr;
  std::vector<std::map<int64_t, ChannelMessage>> unacked_;  // by server and sequence; empty if retry_seconds is 0
  bool leaving_ = false;
  sync::RunRequest request_ = sync::RunRequest::GoOn;
  ClientReport report_;
};

}  // namespace braid
