// Joins as a node other than 0. The node connects to node 0 until it succeeds, authenticates itself, sends its hello,
// and waits for the table of nodes.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/control/authenticator.h"
#include "braid/control/heartbeat.h"
#include "braid/control/job_member.h"
#include "braid/control/job_reader.h"
#include "braid/control/join_steps.h"

namespace braid::control {
namespace {

constexpr double kStepSeconds = 5;  // limit for connecting, for each step of authentication, for TLS

// Returns true if an event of `wanted` occurs before `until` (now_seconds()).
bool ready(pollfd wanted, double until) { return ::poll(&wanted, 1, milliseconds_until(until)) > 0; }

class MemberJoin {
 public:
  explicit MemberJoin(const JoinOptions& options)
      : options_(options), wait_(options), context_(std::make_unique<TlsContext>(options.keys)) {}
  std::unique_ptr<JobControl> run();

 private:
  enum class Place { Nowhere, Gate, Refused, Inside };

  std::unique_ptr<JobControl> attempt();
  Socket connect();
  void pass_gate(Socket& socket);
  void receive(Socket& socket, std::span<char> into) const;
  std::vector<JobNode> table(TlsConnection& line);
  std::vector<JobNode> checked(JobTable table) const;

  const JoinOptions& options_;
  JoinWait wait_;
  std::unique_ptr<TlsContext> context_;
  size_t num_dialed_ = 0;
  Place came_to_ = Place::Nowhere, furthest_ = Place::Nowhere;
  std::string why_;  // error of the last attempt that got furthest, which is the most specific
};

std::unique_ptr<JobControl> MemberJoin::run() {
  for (;;) {
    try {
      return attempt();
    } catch (const UnknownHostError& why) {
      wait_.for_name(why.what());
    } catch (const RetryableError& why) {
      if (came_to_ >= furthest_) why_ = why.what();
      furthest_ = std::max(furthest_, came_to_);
      wait_.for_node_0(why_);
    }
  }
}

std::unique_ptr<JobControl> MemberJoin::attempt() {
  came_to_ = Place::Nowhere;
  Socket socket = connect();
  came_to_ = Place::Gate;
  pass_gate(socket);
  came_to_ = Place::Inside;
  auto line =
      std::make_unique<TlsConnection>(*context_, std::move(socket), TlsSide::Client, options_.most_queued_bytes);
  line->send(framed_message(hello_of(options_)));
  auto nodes = table(*line);
  context_->forget_keys();
  return std::make_unique<JobMember>(MemberParts{std::move(context_), std::move(line), options_.node, std::move(nodes),
                                                 Heartbeat(options_.heartbeat_seconds)});
}

Socket MemberJoin::connect() {
  const auto addresses = root_addresses(options_);
  const SocketAddress& address = addresses[num_dialed_++ % addresses.size()];
  Socket socket = Socket::connecting(address);
  if (const int error = errno; !socket) throw RetryableError(cat(text(address), ": ", std::strerror(error)));
  if (!ready({socket.descriptor(), POLLOUT, 0}, now_seconds() + kStepSeconds)) {
    throw RetryableError(cat(text(address), " does not answer"));
  }
  if (const auto fault = socket.fault(); !fault.empty()) throw RetryableError(cat(text(address), ": ", fault));
  return socket;
}

// The peer is not authenticated yet, so none of its messages ends this node.
void MemberJoin::pass_gate(Socket& socket) {
  AuthenticationBytes nonce;
  receive(socket, nonce);
  const AuthenticationBytes answer = options_.keys->authentication_answer(nonce, {socket.own_end(), socket.peer_end()});
  if (socket.send(answer).bytes < answer.size()) throw RetryableError("node 0 has closed the connection");
  char verdict = kRefused;
  receive(socket, {&verdict, 1});
  if (verdict == kAccepted) return;
  if (verdict != kRefused) throw RetryableError("another program listens there");
  came_to_ = Place::Refused;
  throw RetryableError(cat("node ", options_.node, " is refused: the token (", options_.token_key,
                           ") is another than node 0's, or the attempt or an address"));
}

void MemberJoin::receive(Socket& socket, std::span<char> into) const {
  const double until = now_seconds() + kStepSeconds;
  while (!into.empty()) {
    if (!ready({socket.descriptor(), POLLIN, 0}, until)) throw RetryableError("who listens there says nothing");
    const IoResult moved = socket.receive(into);
    if (!moved.closed.empty()) throw RetryableError(cat("who listens there ", moved.closed));
    into = into.subspan(moved.bytes);
  }
}

// Waits for the table of nodes. Until then node 0 sends heartbeats that name the missing nodes.
std::vector<JobNode> MemberJoin::table(TlsConnection& line) {
  std::string awaited = "the other nodes";
  double until = now_seconds() + kStepSeconds;
  for (;;) {
    line.advance();
    while (const auto bytes = line.next_message()) {
      auto message = parse_job_message(*bytes);
      if (const auto* beat = message ? std::get_if<JobHeartbeat>(&*message) : nullptr) {
        awaited = beat->progress.value_or(awaited);
        continue;
      }
      if (message && std::holds_alternative<NodeFailure>(*message)) throw RunError(std::get<NodeFailure>(*message).why);
      if (auto* table = message ? std::get_if<JobTable>(&*message) : nullptr) return checked(std::move(*table));
      if (!message || !std::holds_alternative<JobRefusal>(*message))
        throw RetryableError("node 0 speaks another protocol");
      std::vector<Problem> problems;
      for (const auto& reason : std::get<JobRefusal>(*message).reasons) problems.push_back({.rule = reason});
      throw ConfigError(std::move(problems));
    }
    const std::string hint = line.established() ? "" : " (perhaps it is in another attempt of the job)";
    if (!line.fault().empty()) throw RetryableError(cat("node 0 ", line.fault(), hint));
    if (line.take_activity()) until = now_seconds() + std::max(kStepSeconds, options_.heartbeat_seconds);
    if (now_seconds() > until) throw RetryableError(cat("node 0 is silent", hint));
    wait_.report(awaited);
    ready(line.wanted(), std::min(until, wait_.due()));
  }
}

std::vector<JobNode> MemberJoin::checked(JobTable table) const {
  const std::string fault = table_problem(table, options_);
  if (fault.empty()) return std::move(table.nodes);
  throw CommError({"joining the job", -1, wait_.waited(), cat("node 0 at ", text(options_.root), " ", fault)});
}

}  // namespace

std::unique_ptr<JobControl> join_as_member(const JoinOptions& options) { return MemberJoin(options).run(); }

}  // namespace braid::control
