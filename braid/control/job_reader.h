// Reads the messages on the connections of a job after the job has begun, on node 0 and on members. Messages of other
// nodes are not trusted: the reader returns only events that name existing nodes and that the validator has accepted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "braid/control/job_control.h"
#include "braid/control/job_message.h"
#include "braid/control/join_job.h"

namespace braid::control {

// The result of reading a message: an event, or the sender's fault, which continues the sentence "node 1 on h1 ". Both
// are empty for a heartbeat without a report.
struct ReadMessage {
  std::optional<JobEvent> event;
  std::string fault;
};

class JobReader {
 public:
  explicit JobReader(int num_nodes) : num_nodes_(num_nodes) {}

  // See JobControl::set_validator().
  void set_validator(MessageValidator validator) { validator_ = std::move(validator); }

  // Called on node 0: reads a message from member `node`. Never throws: any exception, including std::bad_alloc, is
  // returned as the sender's fault.
  ReadMessage from_member(int node, std::string_view bytes) const;
  // Called on a member: reads a message from node 0. Node 0 relays only messages that its own validator has accepted,
  // so an invalid message is node 0's fault. Never throws, like from_member().
  ReadMessage from_root(std::string_view bytes) const;

 private:
  ReadMessage validated(JobEvent event) const;
  ReadMessage read_from_member(int node, std::string_view bytes) const;
  ReadMessage read_from_root(std::string_view bytes) const;
  bool is_node(int node) const { return 0 <= node && node < num_nodes_; }

  const int num_nodes_;
  MessageValidator validator_;
};

// Validates the table that node 0 has sent to the member with `options`. Returns the fault; empty if there is none.
std::string table_problem(const JobTable& table, const JoinOptions& options);

}  // namespace braid::control
