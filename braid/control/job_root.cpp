// Messages to all nodes go through tell_all(), in the same order as in the events of this node.
#include "braid/control/job_root.h"

#include <new>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr double kPartingSeconds = 30;  // time for a failed node to receive its failure
constexpr double kRootEndSeconds = 1;

}  // namespace

JobRoot::JobRoot(RootParts parts)
    : parts_(std::move(parts)),
      reader_(static_cast<int>(parts_.nodes.size())),
      lives_(parts_.nodes.size()),
      faults_(lives_.size()) {
  parts_.heartbeat.listen();
  for (PeerLiveness& life : lives_) life.last_received = parts_.heartbeat.listened();
}

JobRoot::~JobRoot() {
  if (!parts_.reception) return;
  for (auto& line : parts_.lines) {
    if (line) parts_.reception->part(std::move(line), kRootEndSeconds);
  }
  parts_.reception->finish(kRootEndSeconds);
}

void JobRoot::broadcast(const std::string& bytes) {
  check(bytes.size() <= kMaxBroadcastBytes, "a message to the nodes of a job has at most 64 MiB");
  events_.push_back({JobEvent::Kind::Broadcast, 0, bytes});
  tell_all(framed_message(JobBroadcast{0, bytes}));
}

void JobRoot::report_progress(const std::string& bytes) { events_.push_back({JobEvent::Kind::Progress, 0, bytes}); }

int JobRoot::watch(std::vector<pollfd>& watched) const {
  if (!parts_.reception) return 1000;
  parts_.reception->watch(watched);
  for (const auto& line : parts_.lines) {
    if (line) watched.push_back(line->wanted());
  }
  if (!events_.empty()) return 0;
  return milliseconds_until(std::min(parts_.heartbeat.due(), parts_.reception->due()));
}

std::vector<JobEvent> JobRoot::advance() {
  if (!parts_.reception) return {};
  parts_.heartbeat.listen();
  parts_.reception->advance();
  refuse_late();
  for (int node = 1; node < static_cast<int>(lives_.size()); ++node) receive(node);
  fail_lost_nodes();
  if (parts_.heartbeat.take_due()) send_heartbeat();
  return std::exchange(events_, {});
}

void JobRoot::leave_to_child() {
  parts_.lines.clear();
  parts_.reception.reset();
}

void JobRoot::refuse_late() {
  std::erase_if(parts_.reception->arrivals(), [&](AcceptedConnection& arrival) {
    if (!arrival.hello) return false;
    const std::string who = cat("node ", arrival.hello->node, " on ", arrival.hello->self.host);
    parts_.reception->refuse(std::move(arrival), {cat(who, ": came when the job had begun")});
    return true;
  });
}

void JobRoot::receive(int node) {
  TlsConnection* line = parts_.lines[node].get();
  if (line == nullptr) return;
  line->advance();
  if (line->take_activity()) lives_[node].last_received = parts_.heartbeat.listened();
  try {
    while (faults_[node].empty()) {
      const auto bytes = line->next_message();
      if (!bytes) return;
      auto [event, fault] = reader_.from_member(node, *bytes);
      faults_[node] = std::move(fault);
      if (event) take(std::move(*event));
    }
  } catch (const std::bad_alloc&) {
    faults_[node] = "has sent more than there is memory for";
  }
}

void JobRoot::take(JobEvent event) {
  if (event.kind == JobEvent::Kind::Broadcast) tell_all(framed_message(JobBroadcast{event.node, event.bytes}));
  events_.push_back(std::move(event));
}

void JobRoot::fail_node(int node, const std::string& why) {
  check(node > 0, "node 0 does not lose itself");
  if (faults_[node].empty()) faults_[node] = why;
}

// Starts again after each failure, because its message may overflow the send queue of another node.
void JobRoot::fail_lost_nodes() {
  for (int node = 1; node < static_cast<int>(lives_.size()); ++node) {
    const std::string why = loss(node);
    if (why.empty()) continue;
    auto line = std::move(parts_.lines[node]);
    const Frame frame = framed_message(NodeFailure{node, why});
    line->send(frame);
    parts_.reception->part(std::move(line), kPartingSeconds);
    tell_all(frame);
    events_.push_back({JobEvent::Kind::Lost, node, why});
    node = 0;
  }
}

std::string JobRoot::loss(int node) const {
  const TlsConnection* line = parts_.lines[node].get();
  if (line == nullptr) return "";
  if (!faults_[node].empty()) return faults_[node];
  if (!line->fault().empty()) return line->fault();
  if (!lives_[node].lost(parts_.heartbeat)) return "";
  return cat("was silent for ", fixed(parts_.heartbeat.listened() - lives_[node].last_received, 1), " s");
}

void JobRoot::send_heartbeat() { tell_all(framed_message(JobHeartbeat{})); }

void JobRoot::tell_all(const Frame& frame) {
  for (const auto& line : parts_.lines) {
    if (!line) continue;
    line->send(frame);
    line->flush();
  }
}

}  // namespace braid::control
