// Node 0 sends a member's own broadcasts back to it, at their place in the order.
#include "braid/control/job_member.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr double kMemberEndSeconds = 1;
constexpr int kNothingDueMilliseconds = 1000;

}  // namespace

JobMember::JobMember(MemberParts parts) : parts_(std::move(parts)), reader_(static_cast<int>(parts_.nodes.size())) {}

JobMember::~JobMember() {
  if (!parts_.line) return;
  LingeringConnections farewell;
  farewell.add(std::move(parts_.line), kMemberEndSeconds);
  farewell.wait(kMemberEndSeconds);
}

void JobMember::broadcast(const std::string& bytes) {
  check(bytes.size() <= kMaxBroadcastBytes, "a message to the nodes of a job has at most 64 MiB");
  if (!parts_.line) return;
  parts_.line->send(framed_message(JobBroadcastRequest{bytes}));
  parts_.line->flush();
}

// Drops a report that is too long for a heartbeat; the next report may be shorter.
void JobMember::report_progress(const std::string& bytes) {
  if (bytes.size() <= kMostReportBytes) progress_ = bytes;
}

int JobMember::watch(std::vector<pollfd>& watched) const {
  if (!events_.empty()) return 0;
  if (!parts_.line) return kNothingDueMilliseconds;
  watched.push_back(parts_.line->wanted());
  return milliseconds_until(parts_.heartbeat.due());
}

std::vector<JobEvent> JobMember::advance() {
  parts_.heartbeat.listen();
  if (parts_.line) receive();
  if (parts_.line && parts_.heartbeat.take_due()) send_heartbeat();
  return std::exchange(events_, {});
}

// Processes the messages that node 0 sent before it failed.
void JobMember::receive() {
  parts_.line->advance();
  if (parts_.line->take_activity()) root_.last_received = parts_.heartbeat.listened();
  while (parts_.line) {
    const auto bytes = parts_.line->next_message();
    if (!bytes) break;
    auto [event, fault] = reader_.from_root(*bytes);
    if (!fault.empty()) return take_loss(0, fault);
    if (!event) continue;
    if (event->kind == JobEvent::Kind::Lost) {
      take_loss(event->node, event->bytes);
    } else {
      events_.push_back(std::move(*event));
    }
  }
  if (!parts_.line) return;
  if (!parts_.line->fault().empty()) return take_loss(0, parts_.line->fault());
  if (!root_.lost(parts_.heartbeat)) return;
  take_loss(0, cat("was silent for ", fixed(parts_.heartbeat.listened() - root_.last_received, 1), " s"));
}

void JobMember::send_heartbeat() {
  parts_.line->send(framed_message(JobHeartbeat{std::exchange(progress_, {})}));
  parts_.line->flush();
}

// Closes the connection if node 0 or this node has failed, because no messages follow.
void JobMember::take_loss(int node, const std::string& why) {
  events_.push_back({JobEvent::Kind::Lost, node, why});
  if (node == 0 || node == parts_.node) parts_.line.reset();
}

}  // namespace braid::control
