// The messages of a job's control channel and their encoding. docs/many_hosts.md lists them in a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/control/frame.h"
#include "braid/control/job_control.h"

namespace braid::control {

constexpr uint32_t kJobProtocol = 4;

// Limits of messages. parse_job_message() rejects messages above them, except for the limits of refusals, which
// framed_message() applies.
constexpr int kMostRanksOfNode = 1024;
constexpr size_t kMostHostBytes = 1024;  // length of a host's name
constexpr size_t kMostHelloBytes = size_t{16} << 20;
constexpr size_t kMostReportBytes = size_t{1} << 20;    // the report in a heartbeat
constexpr size_t kMostReasonBytes = size_t{64} << 10;   // one reason of a refusal or failure
constexpr size_t kMostRefusalBytes = size_t{16} << 20;  // all reasons of a refusal together

// Sent by a node to node 0 as its first message. If `protocol` is another version, the other fields are not read.
struct JobHello {
  uint32_t protocol = kJobProtocol;
  int node = 0;
  int num_nodes = 1;
  std::string boot_id;                // identifies the machine: equal in all containers on it
  std::string engines;                // names and versions, compared as text
  std::vector<std::string> settings;  // compared as text: "train.steps = 50"
  JobNode self;
};
// Sent by node 0 to all nodes once all have joined: the job begins.
struct JobTable {
  std::vector<JobNode> nodes;
};
// Sent by node 0 to a node that cannot join. Each reason is a sentence.
struct JobRefusal {
  std::vector<std::string> reasons;
};
// Sent by a node to node 0, which relays `bytes` to all nodes.
struct JobBroadcastRequest {
  std::string bytes;
};
// Sent by node 0 to all nodes: the broadcast of `node`.
struct JobBroadcast {
  int node = 0;
  std::string bytes;
};
// Sent by node 0 and by members: the sender is alive.
struct JobHeartbeat {
  // From a member, its report_progress(). From node 0 before the table, the nodes that it waits for.
  std::optional<std::string> progress;
};
// Sent by node 0 to all nodes, including the failed one. If it is sent instead of the table, it names a node that did
// not join.
struct NodeFailure {
  int node = 0;
  std::string why;
};

using JobMessage =
    std::variant<JobHello, JobTable, JobRefusal, JobBroadcastRequest, JobBroadcast, JobHeartbeat, NodeFailure>;

// The largest broadcast of a node. When relayed, it fits into a frame.
constexpr size_t kMaxBroadcastBytes = kMostFrameBytes - 64;
// Returns the frame of `message`. Shortens reasons to their limits.
Frame framed_message(JobMessage message);
// Returns nothing if `bytes` are not a valid message: cut short, followed by other bytes, of an unknown kind, above one
// of the limits, or with a node of fewer than 1 or more than kMostRanksOfNode ranks. Allocates at most a small multiple
// of the size of `bytes`.
std::optional<JobMessage> parse_job_message(std::string_view bytes);

}  // namespace braid::control
