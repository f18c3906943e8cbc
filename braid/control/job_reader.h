// The reader of everything that comes over the lines of a job once it has begun, on node 0 and on the others. Nothing
// that another node sends is trusted: what the reader returns names nodes that there are, and a judge has accepted it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "braid/control/job_control.h"
#include "braid/control/job_message.h"
#include "braid/control/join_job.h"

namespace braid::control {

// Either an event or what is wrong with its sender, which continues the sentence "node 1 on h1 "; neither for a
// heartbeat without news.
struct ReadMessage {
  std::optional<JobEvent> event;
  std::string fault;
};

class JobReader {
 public:
  explicit JobReader(int num_nodes) : num_nodes_(num_nodes) {}

  // See JobControl::judge_by().
  void judge_by(MessageValidator judge) { judge_ = std::move(judge); }

  // Never throw: whatever goes wrong, want of memory included, is the sender's fault.
  // By node 0, of what member `node` has sent.
  ReadMessage from_member(int node, std::string_view bytes) const;
  // By a member, of what node 0 has sent. Node 0 relays nothing that its own judge has not accepted, so that whatever
  // is wrong with it is node 0's fault.
  ReadMessage from_root(std::string_view bytes) const;

 private:
  ReadMessage judged(JobEvent event) const;
  ReadMessage read_from_member(int node, std::string_view bytes) const;
  ReadMessage read_from_root(std::string_view bytes) const;
  bool is_node(int node) const { return 0 <= node && node < num_nodes_; }

  const int num_nodes_;
  MessageValidator judge_;
};

// Validates the table that node 0 has sent to the member with `options`. Returns the fault; empty if there is none.
std::string table_problem(const JobTable& table, const JoinOptions& options);

}  // namespace braid::control
