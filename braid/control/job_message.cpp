// The members of each message (base/packed.h). Each length has four bytes.
#include "braid/control/job_message.h"

#include <algorithm>
#include <utility>

#include "braid/base/packed.h"

namespace braid::control {
template <class Pack>
void members(Pack& pack, JobNode& node) {
  pack(node.host, node.num_ranks);
  if constexpr (Pack::kReads) {
    pack.require(node.host.size() <= kMostHostBytes && 1 <= node.num_ranks && node.num_ranks <= kMostRanksOfNode);
  }
}

template <class Pack>
void members(Pack& pack, JobHello& hello) {
  pack(hello.protocol);
  if constexpr (Pack::kReads) {
    if (hello.protocol != kJobProtocol) return pack.skip_rest();
  }
  pack(hello.node, hello.num_nodes, hello.boot_id, hello.engines, hello.settings, hello.self);
}

template <class Pack>
void members(Pack& pack, JobTable& table) {
  pack(table.nodes);
}

template <class Pack>
void members(Pack& pack, JobRefusal& refusal) {
  pack(refusal.reasons);
}

template <class Pack>
void members(Pack& pack, JobBroadcastRequest& request) {
  pack(request.bytes);
}

template <class Pack>
void members(Pack& pack, JobBroadcast& broadcast) {
  pack(broadcast.node, broadcast.bytes);
}

template <class Pack>
void members(Pack& pack, JobHeartbeat& heartbeat) {
  pack(heartbeat.progress);
}

template <class Pack>
void members(Pack& pack, NodeFailure& failure) {
  pack(failure.node, failure.why);
}

namespace {

using MessageLength = uint32_t;
constexpr size_t kKindBytes = 1;
constexpr size_t kHeartbeatHeadBytes = 5;  // a flag for progress, and the length of the progress

// Returns true if the message is within the limits of its kind. `size` counts the bytes of its members.
bool is_within_limits(const JobMessage& message, size_t size) {
  if (std::holds_alternative<JobHello>(message)) return size <= kMostHelloBytes;
  if (const auto* word = std::get_if<JobBroadcastRequest>(&message)) return word->bytes.size() <= kMaxBroadcastBytes;
  if (std::holds_alternative<JobHeartbeat>(message)) return size <= kMostReportBytes + kHeartbeatHeadBytes;
  if (const auto* loss = std::get_if<NodeFailure>(&message)) return loss->why.size() <= kMostReasonBytes;
  return true;
}

void shorten(std::string& reason) { reason.resize(std::min(reason.size(), kMostReasonBytes)); }

// Keeps as many reasons as a refusal may contain.
void shorten(JobRefusal& refusal) {
  size_t bytes = 0, count = 0;
  for (std::string& reason : refusal.reasons) {
    shorten(reason);
    bytes += reason.size();
    if (bytes > kMostRefusalBytes) break;
    ++count;
  }
  refusal.reasons.resize(count);
}

}  // namespace

Frame framed_message(JobMessage message) {
  if (auto* refusal = std::get_if<JobRefusal>(&message)) shorten(*refusal);
  if (auto* loss = std::get_if<NodeFailure>(&message)) shorten(loss->why);
  return framed(packed<MessageLength>(std::move(message)));
}

std::optional<JobMessage> parse_job_message(std::string_view bytes) {
  auto message = unpacked<JobMessage, MessageLength>(bytes);
  if (message && !is_within_limits(*message, bytes.size() - kKindBytes)) message.reset();
  return message;
}

}  // namespace braid::control
