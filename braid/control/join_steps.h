// The two sides of joining a job, and what they share.
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

// The deadline of a node's wait for the others, and its messages meanwhile.
class JoinWait {
 public:
  // `options` outlives this.
  explicit JoinWait(const JoinOptions& options);

  double deadline() const { return begin_ + options_.join_seconds; }  // seconds of the clock
  double due() const { return say_at_; }                              // at which to say it again
  double waited() const;
  // Says what is waited for, where it is time.
  void say(const std::string& what);
  // Says it where it is time, and waits a little. Throws RunError with `why` once the time has passed.
  void for_node_0(const std::string& why);
  // The same for an unknown host name; throws ConfigError once it has been unknown for too long.
  void for_name(const std::string& why);

 private:
  const JoinOptions& options_;
  const double begin_;
  double say_at_, unnamed_since_ = -1;
};

// Returns node 0's addresses. Throws UnknownHostError for an unknown name, and ConfigError if it stands for all
// interfaces or is not loopback though the job stays on this host.
std::vector<SocketAddress> root_addresses(const JoinOptions& options);
JobHello hello_of(const JoinOptions& options);

std::unique_ptr<JobControl> join_as_root(const JoinOptions& options);
std::unique_ptr<JobControl> join_as_member(const JoinOptions& options);

}  // namespace braid::control
