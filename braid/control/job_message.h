// The messages of a job's control channel and their bytes (docs/many_hosts.md has them as a table).
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

// Limits of what parse_job_message() accepts, whoever has sent it.
constexpr int kMostRanksOfNode = 1024;
constexpr size_t kMostHostBytes = 1024;  // of a host's name
constexpr size_t kMostHelloBytes = size_t{16} << 20;
constexpr size_t kMostReportBytes = size_t{1} << 20;    // of a heartbeat's progress
constexpr size_t kMostReasonBytes = size_t{64} << 10;   // of one sentence that says why
constexpr size_t kMostRefusalBytes = size_t{16} << 20;  // of all reasons of a refusal

// A node to node 0, first of all. Of one that speaks another protocol, only that is known.
struct JobHello {
  uint32_t protocol = kJobProtocol;
  int node = 0;
  int num_nodes = 1;
  std::string boot_id;                // of the machine's system: the same for all containers on it
  std::string engines;                // with their versions, as they are compared
  std::vector<std::string> settings;  // as they are compared, "train.steps = 50"
  JobNode self;
};
// Node 0 to all: they are complete.
struct JobTable {
  std::vector<JobNode> nodes;
};
// Node 0 to a node that cannot take part: why, in sentences.
struct JobRefusal {
  std::vector<std::string> reasons;
};
// A node to node 0, for all.
struct JobBroadcastRequest {
  std::string bytes;
};
// Node 0 to all: what `node` has said.
struct JobBroadcast {
  int node = 0;
  std::string bytes;
};
// Either way: who sends it lives.
struct JobHeartbeat {
  std::optional<std::string> progress;  // before the table, of node 0: for whom it waits
};
// Node 0 to all, and to the node itself. In place of the table: who did not come.
struct NodeFailure {
  int node = 0;
  std::string why;
};

using JobMessage =
    std::variant<JobHello, JobTable, JobRefusal, JobBroadcastRequest, JobBroadcast, JobHeartbeat, NodeFailure>;

// The most that a node may say at once: it fits into a frame when it is relayed.
constexpr size_t kMostSaidBytes = kMostFrameBytes - 64;
// Shortens reasons to their limits.
Frame framed_message(JobMessage message);
// Returns nothing if `bytes` are no message: cut short, followed by other bytes, of an unknown kind, above one of the
// limits, or with a node of fewer than 1 or more than kMostRanksOfNode ranks. The memory it takes is a small multiple
// of `bytes`.
std::optional<JobMessage> parse_job_message(std::string_view bytes);

}  // namespace braid::control
