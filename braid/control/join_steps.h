// The two sides of joining a job, and what they share.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "braid/control/job_message.h"
#include "braid/control/join_job.h"

namespace braid {

// What may go better a moment later.
struct NotYet : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct UnknownHost : NotYet {
  using NotYet::NotYet;
};

// How long a node waits for the others, and what it says meanwhile.
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
  // The same for a host's name that is not known; throws ConfigError once that has been so for too long.
  void for_name(const std::string& why);

 private:
  const JoinOptions& options_;
  const double begin_;
  double say_at_, unnamed_since_ = -1;
};

// Of node 0. Throws UnknownHost where the name is not known, ConfigError where it is all interfaces, or not loopback
// though the job stays on this host.
std::vector<SocketAddress> root_addresses(const JoinOptions& options);
JobHello hello_of(const JoinOptions& options);

std::unique_ptr<JobControl> join_as_root(const JoinOptions& options);
std::unique_ptr<JobControl> join_as_member(const JoinOptions& options);

}  // namespace braid
