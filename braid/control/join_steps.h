// The two sides of joining a job, node 0 and the members, and their common code.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "braid/control/job_message.h"
#include "braid/control/join_job.h"

namespace braid::control {

// A failed attempt that may succeed later.
struct RetryableError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct UnknownHostError : RetryableError {
  using RetryableError::RetryableError;
};

// The deadline of a node that waits for other nodes, and its reports of the missing nodes.
class JoinWait {
 public:
  // REQUIRES: `options` outlives this.
  explicit JoinWait(const JoinOptions& options);

  double deadline() const { return begin_ + options_.join_seconds; }  // in now_seconds()
  double due() const { return say_at_; }                              // time of the next report, in now_seconds()
  double waited() const;
  // Calls JoinOptions::on_wait with `what` if a report is due.
  void report(const std::string& what);
  // Reports that node 0 cannot be reached, if a report is due, and sleeps for 100 ms. Throws RunError with `why` after
  // the deadline.
  void for_node_0(const std::string& why);
  // Does the same if the host name is unknown. Throws ConfigError if it stays unknown for JoinOptions::name_seconds.
  void for_name(const std::string& why);

 private:
  const JoinOptions& options_;
  const double begin_;
  double say_at_, unnamed_since_ = -1;
};

// Returns node 0's addresses. Throws UnknownHostError for an unknown name. Throws ConfigError if an address stands for
// all interfaces, or is not a loopback address in a job that stays on this host.
std::vector<SocketAddress> root_addresses(const JoinOptions& options);
JobHello hello_of(const JoinOptions& options);

std::unique_ptr<JobControl> join_as_root(const JoinOptions& options);
std::unique_ptr<JobControl> join_as_member(const JoinOptions& options);

}  // namespace braid::control
