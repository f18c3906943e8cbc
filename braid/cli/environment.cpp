// Asks Linux.
#include "braid/cli/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include "braid/base/host.h"
#include "braid/base/text.h"

namespace braid {
namespace {

// The value of the first line "key : value" of a file of /proc; empty when there is none.
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos || !line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

std::string utc_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string memory_text() {
  const std::string kib = proc_value("/proc/meminfo", "MemTotal");  // "24680000 kB"
  return kib.empty() ? "" : human_bytes(1024 * std::strtod(kib.c_str(), nullptr));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment_facts() {
  utsname system{};
  uname(&system);
  std::vector<std::pair<std::string, std::string>> facts{
      {"started", utc_text(wall_seconds())},
      {"host", host_name()},
      {"system", cat(system.sysname, " ", system.release, " ", system.machine)},
      {"processor", proc_value("/proc/cpuinfo", "model name")},
      {"cores", cat(num_cores())},
      {"memory", memory_text()},
      {"braid", BRAID_VERSION},
      {"compiler", cat("g++ ", __VERSION__)},
  };
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace braid
