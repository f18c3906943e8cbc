// The exchange of all nodes before the ranks start.
#include "braid/cli/torch/job_agreements.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/torch/job_agreements.h"
#include "braid/cli/torch/stop_signals.h"

namespace braid::cli {

std::vector<std::string> ReadyLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  agreed_ = true;
  const auto all = job_.rounds().exchange(Readiness{.received = {StopSignals::received()}});
  const auto who = [&](size_t node) { return cat("node ", node, " on ", job_.nodes()[node].host); };
  for (size_t node = 0; node < all.size(); ++node) {
    if (all[node].ready) continue;
    const std::string why = cat(who(node), ": ", all[node].why);
    if (all[node].user_is_wrong) throw ConfigError({{"", "", why, ""}});
    throw RunError(why);
  }
  for (size_t node = 0; node < all.size(); ++node) {
    const int signal = all[node].received.signal;
    if (signal == 0) continue;
    throw StoppedBeforeRanks(
        signal, cat(signal_name(signal), " to ", who(node), " before the first step: there was nothing to save"));
  }
  return job_.launcher().run(num_ranks, body, options);
}

void ReadyLauncher::refuse(const std::exception& why) const {
  if (agreed_) return;
  agreed_ = true;
  const bool of_user = dynamic_cast<const ConfigError*>(&why) != nullptr;
  try {
    job_.rounds().exchange(Readiness{.ready = false, .user_is_wrong = of_user, .why = why.what()});
  } catch (const CommError&) {
    return;  // the caller reports `why`; failed nodes receive nothing
  }
}

}  // namespace braid::cli
