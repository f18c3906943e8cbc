// The two sides of joining a job, and what they share.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "braid/control/job_keys.h"
#include "braid/control/job_message.h"
#include "braid/control/join_job.h"

namespace braid {

// How errors name the address and the token.
inline constexpr const char *kRootKey = "--root", *kTokenKey = "--token-file";

// What may go better a moment later.
struct NotYet : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Of node 0. Throws NotYet where the name is not known, ConfigError where it is all interfaces, or not loopback though
// there is no token.
std::vector<SocketAddress> root_addresses(const JoinOptions& options);
// Waits a little, or throws RunError with `why` once `deadline`, in seconds of the clock, has passed.
void wait_or_give_up(const JoinOptions& options, double deadline, const std::string& why);
JobHello hello_of(const JoinOptions& options);

std::unique_ptr<JobControl> join_as_root(const JoinOptions& options, const JobKeys& keys);
std::unique_ptr<JobControl> join_as_member(const JoinOptions& options, const JobKeys& keys);

}  // namespace braid
