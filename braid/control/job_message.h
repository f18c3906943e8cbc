// What goes over the lines of a job, and its bytes (docs/many_hosts.md has them as a table). It does not know who sends
// it when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/control/frame.h"
#include "braid/control/job_control.h"

namespace braid {

constexpr uint32_t kJobProtocol = 4;

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
struct JobWord {
  std::string bytes;
};
// Node 0 to all: what `node` has said.
struct JobSaid {
  int node = 0;
  std::string bytes;
};
// Either way: who sends it lives.
struct JobBeat {
  std::optional<std::string> progress;  // before the table, of node 0: for whom it waits
};
// Node 0 to all, and to the node itself. In place of the table: who did not come.
struct JobLoss {
  int node = 0;
  std::string why;
};

using JobMessage = std::variant<JobHello, JobTable, JobRefusal, JobWord, JobSaid, JobBeat, JobLoss>;

// At most kMostSaidBytes of what callers have put in.
constexpr size_t kMostSaidBytes = kMostFrameBytes - 64;
Frame framed_message(const JobMessage& message);
// Nothing where `bytes` are no message: cut short, with bytes behind it, or of an unknown kind.
std::optional<JobMessage> parse_job_message(std::string_view bytes);

}  // namespace braid
