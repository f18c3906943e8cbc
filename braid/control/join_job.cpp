// Common code of both sides of joining, and the choice between them.
#include "braid/control/join_job.h"

#include <fstream>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/control/join_steps.h"

namespace braid::control {
namespace {

constexpr int kRetryMilliseconds = 100;

std::string own_boot_id() {
  std::string line;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<SocketAddress> root_addresses(const JoinOptions& options) {
  const ResolvedAddress resolved = resolve(options.root);
  if (resolved.found.empty()) throw UnknownHostError(resolved.fault);
  for (const SocketAddress& address : resolved.found) {
    std::string fault;
    if (is_wildcard(address)) {
      fault = "stands for all interfaces of a host; node 0 listens on one";
    } else if (options.on_this_host && !is_loopback(address)) {
      fault = cat("is reached by other hosts, so the job needs a token (", options.token_key, ")");
    }
    if (!fault.empty()) throw ConfigError({{options.root_key, text(options.root), fault, ""}});
  }
  return resolved.found;
}

JoinWait::JoinWait(const JoinOptions& options)
    : options_(options), begin_(now_seconds()), say_at_(begin_ + options.on_wait_seconds) {}

double JoinWait::waited() const { return now_seconds() - begin_; }

void JoinWait::report(const std::string& what) {
  if (now_seconds() < say_at_) return;
  say_at_ = now_seconds() + options_.on_wait_seconds;
  options_.on_wait(what);
}

void JoinWait::for_node_0(const std::string& why) {
  if (now_seconds() > deadline()) {
    throw RunError(cat("node ", options_.node, " did not reach node 0 at ", text(options_.root), " within ",
                       exact(options_.join_seconds), " s: ", why));
  }
  unnamed_since_ = -1;
  report(cat("node 0: ", why));
  ::poll(nullptr, 0, kRetryMilliseconds);
}

void JoinWait::for_name(const std::string& why) {
  const double since = unnamed_since_ < 0 ? now_seconds() : unnamed_since_;
  if (now_seconds() - since > options_.name_seconds)
    throw ConfigError({{options_.root_key, text(options_.root), why, ""}});
  for_node_0(why);
  unnamed_since_ = since;
}

JobHello hello_of(const JoinOptions& options) {
  const JobHello hello{kJobProtocol,    options.node,     options.num_nodes, own_boot_id(),
                       options.engines, options.settings, options.self};
  if (!parse_job_message(std::string_view(*framed_message(hello)).substr(kFrameHeadBytes))) {
    throw ConfigError({{"", "",
                        cat("the settings of a job must have at most ", kMostHelloBytes >> 20,
                            " MiB, and each of its nodes 1 to ", kMostRanksOfNode, " ranks"),
                        ""}});
  }
  return hello;
}

std::unique_ptr<JobControl> join_job(const JoinOptions& options) {
  check(0 <= options.node && options.node < options.num_nodes, "a node's number is less than the number of nodes");
  check(options.heartbeat_seconds > 0, "a heartbeat takes time");
  if (options.num_nodes == 1) return make_solo_job(options.self);
  check(options.keys != nullptr, "a job of several nodes has keys");
  return options.node == 0 ? join_as_root(options) : join_as_member(options);
}

}  // namespace braid::control
