// Joins as node 0. It listens, receives the hellos of the other nodes, and sends all nodes the faults or the table of
// nodes.
#include <algorithm>
#include <limits>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/control/heartbeat.h"
#include "braid/control/job_root.h"
#include "braid/control/join_problems.h"
#include "braid/control/join_steps.h"

namespace braid::control {
namespace {

constexpr double kRefusalsSeconds = 5;
constexpr size_t kMostHellosTooMany = 64;  // beyond one for each node; node 0 then stops waiting
constexpr double kNever = std::numeric_limits<double>::infinity();

class RootJoin {
 public:
  explicit RootJoin(const JoinOptions& options);
  std::unique_ptr<JobControl> run();

 private:
  Authenticator make_authenticator();
  void wait_for_news();
  void send_heartbeat(const std::vector<int>& missing);
  std::vector<ReceivedHello> received_hellos() const;
  void note(std::vector<std::string> faults);
  double ends_at() const { return std::min(deadline_, fault_until_); }
  std::unique_ptr<JobControl> start();
  std::string unauthenticated_peers() const;
  std::string absence(const std::vector<int>& missing) const;
  [[noreturn]] void give_up(const std::vector<int>& missing);
  [[noreturn]] void refuse(const std::vector<int>& missing);

  const JoinOptions& options_;
  const JobHello hello_;
  JoinWait wait_;
  const double deadline_;
  double fault_until_ = kNever;
  std::vector<std::string> faults_;  // faults of the connected nodes; if they have none, the last that were found
  Heartbeat heartbeat_;
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<Acceptor> acceptor_;
};

RootJoin::RootJoin(const JoinOptions& options)
    : options_(options),
      hello_(hello_of(options)),
      wait_(options),
      deadline_(wait_.deadline()),
      heartbeat_(options.heartbeat_seconds),
      context_(std::make_unique<TlsContext>(options.keys)),
      acceptor_(std::make_unique<Acceptor>(make_authenticator(), *context_, options.most_queued_bytes)) {}

Authenticator RootJoin::make_authenticator() {
  for (;;) {
    try {
      for (const SocketAddress& address : root_addresses(options_)) {
        if (Socket listener = Socket::listening(options_.root_key, address))
          return {std::move(listener), options_.keys};
      }
      throw ConfigError(
          {{options_.root_key, text(options_.root), "is no address of this host, on which node 0 listens", ""}});
    } catch (const UnknownHostError& why) {
      wait_.for_name(why.what());
    }
  }
}

std::unique_ptr<JobControl> RootJoin::run() {
  for (;;) {
    wait_for_news();
    acceptor_->advance();
    const auto others = received_hellos();
    note(join_problems(hello_, options_.ranks_of_nodes, others));
    if (others.size() >= static_cast<size_t>(options_.num_nodes) + kMostHellosTooMany) fault_until_ = now_seconds();
    const auto missing = missing_nodes(options_.num_nodes, others);
    if (fault_until_ == kNever && missing.empty()) return start();
    if (missing.empty() || now_seconds() > ends_at()) {
      if (faults_.empty()) give_up(missing);
      refuse(missing);
    }
    send_heartbeat(missing);
    wait_.report(nodes_text(missing) + unauthenticated_peers());
  }
}

void RootJoin::wait_for_news() {
  std::vector<pollfd> watched;
  acceptor_->watch(watched);
  const double due = std::min({heartbeat_.due(), acceptor_->due(), ends_at(), wait_.due()});
  ::poll(watched.data(), watched.size(), milliseconds_until(due));
}

// Sends the waiting nodes a heartbeat that names the missing nodes.
void RootJoin::send_heartbeat(const std::vector<int>& missing) {
  if (!heartbeat_.take_due()) return;
  const Frame frame = framed_message(JobHeartbeat{nodes_text(missing)});
  for (AcceptedConnection& arrival : acceptor_->arrivals()) {
    if (!arrival.hello) continue;
    arrival.line->send(frame);
    arrival.line->flush();
  }
}

std::vector<ReceivedHello> RootJoin::received_hellos() const {
  std::vector<ReceivedHello> hellos;
  for (const AcceptedConnection& arrival : acceptor_->arrivals()) {
    if (arrival.hello) hellos.push_back({*arrival.hello, arrival.line->peer()});
  }
  return hellos;
}

// Without faults, clears their deadline: the node that had a fault may have disconnected.
void RootJoin::note(std::vector<std::string> faults) {
  if (faults.empty()) {
    fault_until_ = kNever;
    return;
  }
  fault_until_ = std::min(fault_until_, now_seconds() + options_.fault_seconds);
  faults_ = std::move(faults);
}

std::unique_ptr<JobControl> RootJoin::start() {
  std::vector<JobNode> nodes(static_cast<size_t>(options_.num_nodes));
  std::vector<std::unique_ptr<TlsConnection>> lines(nodes.size());
  nodes[0] = options_.self;
  std::erase_if(acceptor_->arrivals(), [&](AcceptedConnection& arrival) {
    if (!arrival.hello) return false;
    const auto node = static_cast<size_t>(arrival.hello->node);
    nodes[node] = arrival.hello->self;
    lines[node] = std::move(arrival.line);
    lines[node]->limit_messages(kMostFrameBytes);
    return true;
  });
  const Frame table = framed_message(JobTable{nodes});
  for (const auto& line : lines) {
    if (!line) continue;
    line->send(table);
    line->flush();
  }
  return std::make_unique<JobRoot>(
      RootParts{std::move(context_), std::move(acceptor_), std::move(lines), std::move(nodes), heartbeat_});
}

// Describes the refused peers, which may be the missing nodes.
std::string RootJoin::unauthenticated_peers() const {
  const Authenticator& authenticator = acceptor_->authenticator();
  if (authenticator.num_refused() == 0) return "";
  return cat("; ", authenticator.num_refused(),
             " refused: the token is another, or the attempt or an address (the last from ",
             authenticator.last_refused(), ")");
}

std::string RootJoin::absence(const std::vector<int>& missing) const {
  std::string sentence = missing_sentence(missing, wait_.waited()) + unauthenticated_peers();
  if (!acceptor_->last_fault().empty()) sentence += cat("; ", acceptor_->last_fault());
  return sentence;
}

// Ends the join because nodes are missing. The connected nodes have no faults.
void RootJoin::give_up(const std::vector<int>& missing) {
  const std::string why = absence(missing);
  for (AcceptedConnection& arrival : std::exchange(acceptor_->arrivals(), {})) {
    if (!arrival.hello) continue;
    arrival.line->send(framed_message(NodeFailure{missing[0], why}));
    acceptor_->part(std::move(arrival.line), kRefusalsSeconds);
  }
  acceptor_->finish(kRefusalsSeconds);
  throw RunError(why);
}

void RootJoin::refuse(const std::vector<int>& missing) {
  std::vector<std::string> faults = faults_;
  if (!missing.empty()) faults.push_back(absence(missing));
  for (AcceptedConnection& arrival : std::exchange(acceptor_->arrivals(), {})) {
    if (arrival.hello) acceptor_->refuse(std::move(arrival), faults);
  }
  acceptor_->finish(kRefusalsSeconds);
  std::vector<Problem> problems;
  for (const std::string& fault : faults) problems.push_back({.rule = fault});
  throw ConfigError(std::move(problems));
}

}  // namespace

std::unique_ptr<JobControl> join_as_root(const JoinOptions& options) { return RootJoin(options).run(); }

}  // namespace braid::control
