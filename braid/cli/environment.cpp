// Asks Linux.
#include "braid/cli/environment.h"

#include <sys/utsname.h>

#include <chrono>
#include <ctime>

#include "braid/base/host_facts.h"
#include "braid/base/text.h"

namespace braid::cli {
namespace {

std::string utc_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment_facts() {
  utsname system{};
  uname(&system);
  const HostFacts here = host_facts();
  std::vector<std::pair<std::string, std::string>> facts{
      {"started", utc_text(wall_seconds())},
      {"host", here.host},
      {"system", cat(system.sysname, " ", system.release, " ", system.machine)},
      {"processor", here.processor},
      {"cores", cat(here.cores)},
      {"memory", here.memory_bytes > 0 ? human_bytes(static_cast<double>(here.memory_bytes)) : ""},
      {"braid", BRAID_VERSION},
      {"compiler", cat("g++ ", __VERSION__)},
  };
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace braid::cli
