// Words of the round: "ready" signal, "wrong" why, "failed" why.
#include "braid/cli/ready_launcher.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/stop_signals.h"

namespace braid {
namespace {

constexpr const char* kReady = "ready";
constexpr const char* kWrong = "wrong";  // the user is
constexpr const char* kFailed = "failed";

}  // namespace

std::vector<std::string> ReadyLauncher::run(int num_ranks, const Body& body, const LaunchOptions& options) const {
  agreed_ = true;
  const auto all = job_.rounds().exchange({kReady, cat(StopSignals::received())});
  const auto who = [&](size_t node) { return cat("node ", node, " on ", job_.nodes()[node].host); };
  for (size_t node = 0; node < all.size(); ++node) {
    const std::string& why = all[node].back();
    if (all[node].at(0) == kWrong) throw ConfigError({{"", "", cat(who(node), ": ", why), ""}});
    if (all[node].at(0) != kReady) throw RunError(cat(who(node), ": ", why));
  }
  for (size_t node = 0; node < all.size(); ++node) {
    const int signal = std::stoi(all[node].back());
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
    job_.rounds().exchange({of_user ? kWrong : kFailed, why.what()});
  } catch (const CommError&) {
    return;  // who is lost hears nothing; what is wrong here is said here
  }
}

}  // namespace braid
