// Files of /proc and /sys, and three calls. What is not there or not readable is left as "does not say".
#include "braid/base/host_facts.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "braid/base/host.h"

namespace braid {
namespace {

int64_t number_in(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

// The value of the first line "key : value"; empty when there is none.
std::string value_of_line(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos || !line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

void read_memory(const std::string& root, HostFacts& facts) {
  const std::string path = root + "/proc/meminfo";  // "MemTotal:   24680000 kB"
  facts.memory_bytes = 1024 * number_in(value_of_line(path, "MemTotal"));
  facts.free_memory_bytes = 1024 * number_in(value_of_line(path, "MemAvailable"));
  const int64_t most = number_in(first_line(root + "/sys/fs/cgroup/memory.max"));  // "max": 0
  if (most > 0 && most < facts.memory_bytes) facts.memory_bytes = most;
  struct statvfs status {};
  if (::statvfs((root + "/dev/shm").c_str(), &status) == 0) {
    facts.shared_memory_bytes = static_cast<int64_t>(status.f_blocks * status.f_frsize);
  }
}

void read_limit(__rlimit_resource_t resource, int64_t& soft, int64_t& hard) {
  const auto amount = [](rlim_t value) { return value == RLIM_INFINITY ? -1 : static_cast<int64_t>(value); };
  struct rlimit limit {};
  if (::getrlimit(resource, &limit) != 0) return;
  soft = amount(limit.rlim_cur);
  hard = amount(limit.rlim_max);
}

std::vector<HostInterface> interfaces_up(const std::string& root) {
  std::map<std::string, HostInterface> by_name;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char address[NI_MAXHOST];
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(entry->ifa_addr, length, address, sizeof address, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    HostInterface& interface = by_name[entry->ifa_name];
    interface.name = entry->ifa_name;
    interface.addresses.emplace_back(address);
  }
  ::freeifaddrs(first);
  std::vector<HostInterface> all;
  for (auto& [name, interface] : by_name) {
    // -1 where the device has no speed of its own.
    interface.megabits_per_second =
        std::max<int64_t>(0, number_in(first_line(root + "/sys/class/net/" + name + "/speed")));
    all.push_back(std::move(interface));
  }
  return all;
}

// The number of the line "key number"; 0 where there is none.
int64_t number_of_key(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + " ")) return number_in(line.substr(key.size() + 1));
  }
  return 0;
}

// "/user.slice/job": the place under /sys/fs/cgroup, from the line "0::/user.slice/job"; empty: the root.
std::string own_control_group(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.size() == 4 ? "" : line.substr(3);
  }
  return "";
}

}  // namespace

int64_t available_memory_bytes(const std::string& root) {
  int64_t available = 1024 * number_in(value_of_line(root + "/proc/meminfo", "MemAvailable"));
  for (std::string group = own_control_group(root);; group.erase(group.rfind('/'))) {
    const std::string folder = root + "/sys/fs/cgroup" + group;
    const int64_t most = number_in(first_line(folder + "/memory.max"));  // "max": 0
    if (most > 0) {
      const int64_t used = number_in(first_line(folder + "/memory.current"));
      const std::string parts = folder + "/memory.stat";
      const int64_t cache = number_of_key(parts, "inactive_file") + number_of_key(parts, "active_file");
      available = std::min(available, std::max<int64_t>(1, most - used + cache));
    }
    if (group.empty()) return available;
  }
}

HostFacts host_facts(const std::string& root) {
  HostFacts facts;
  facts.host = host_name();
  facts.processor = value_of_line(root + "/proc/cpuinfo", "model name");
  facts.cores = num_cores();
  read_memory(root, facts);
  read_limit(RLIMIT_NOFILE, facts.open_files, facts.most_open_files);
  read_limit(RLIMIT_MEMLOCK, facts.locked_bytes, facts.most_locked_bytes);
  facts.interfaces = interfaces_up(root);
  return facts;
}

}  // namespace braid
