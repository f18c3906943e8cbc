// Facts of a host from /proc, /sys and three system calls. A fact that is missing or not readable stays unknown.
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

// Returns the value of the first line "key : value"; "" if there is none.
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
    // The file holds -1 if the device has no speed of its own.
    interface.megabits_per_second =
        std::max<int64_t>(0, number_in(first_line(root + "/sys/class/net/" + name + "/speed")));
    all.push_back(std::move(interface));
  }
  return all;
}

// Returns the number of the line "key number"; 0 if there is none.
int64_t number_of_key(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + " ")) return number_in(line.substr(key.size() + 1));
  }
  return 0;
}

// The folder of a version of control groups, and its file and key names for memory.
struct MemoryGroups {
  const char *folder, *most, *used, *inactive_cache, *active_cache, *events;
};
constexpr MemoryGroups kVersion2{"/sys/fs/cgroup", "/memory.max", "/memory.current",
                                 "inactive_file",  "active_file", "/memory.events"};
constexpr MemoryGroups kVersion1{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                 "total_inactive_file",   "total_active_file",      "/memory.oom_control"};

// Returns the memory limit of a group in bytes. Without a limit it returns 0 in version 2, whose file holds "max", and
// a number above any memory in version 1.
int64_t limit_of(const MemoryGroups& groups, const std::string& root, const std::string& group) {
  return number_in(first_line(root + groups.folder + group + groups.most));
}

// Returns the group of this process, such as "/user.slice/job"; "" for the root. Lines of /proc/self/cgroup are
// "0::/user.slice/job" in version 2 and "4:memory:/user.slice/job" in version 1. In version 1 a controller may share
// its line with others.
std::string own_control_group(const std::string& root, const MemoryGroups& groups) {
  const bool newer = &groups == &kVersion2;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_it = newer ? line.starts_with("0::") : controllers.find(",memory,") != controllers.npos;
    if (is_it && line.substr(second + 1).starts_with('/'))
      return line.size() == second + 2 ? "" : line.substr(second + 1);
  }
  return "";
}

constexpr int64_t kAnyMemory = int64_t{1} << 60;  // a limit of this many bytes or more means none

struct Memory {
  int64_t most, available;  // bytes
};

// Limits the memory by this process's control group and all groups above it.
void limit_by_groups(const std::string& root, const MemoryGroups& groups, Memory& memory) {
  for (std::string group = own_control_group(root, groups);; group.erase(group.rfind('/'))) {
    const int64_t most = limit_of(groups, root, group);
    if (most > 0 && most < kAnyMemory) {
      const std::string folder = root + groups.folder + group, parts = folder + "/memory.stat";
      const int64_t used = number_in(first_line(folder + groups.used));
      const int64_t cache = number_of_key(parts, groups.inactive_cache) + number_of_key(parts, groups.active_cache);
      memory.most = std::min(memory.most, most);
      memory.available = std::min(memory.available, std::max<int64_t>(1, most - used + cache));
    }
    if (group.empty()) return;
  }
}

Memory own_memory(const std::string& root) {
  const std::string path = root + "/proc/meminfo";  // "MemTotal:   24680000 kB"
  Memory memory{1024 * number_in(value_of_line(path, "MemTotal")),
                1024 * number_in(value_of_line(path, "MemAvailable"))};
  limit_by_groups(root, kVersion2, memory);
  limit_by_groups(root, kVersion1, memory);
  return memory;
}

void read_memory(const std::string& root, HostFacts& facts) {
  const Memory memory = own_memory(root);
  facts.memory_bytes = memory.most;
  facts.free_memory_bytes = memory.available;
  struct statvfs status {};
  if (::statvfs((root + "/dev/shm").c_str(), &status) == 0) {
    facts.shared_memory_bytes = static_cast<int64_t>(status.f_blocks * status.f_frsize);
  }
}

}  // namespace

int64_t available_memory_bytes(const std::string& root) { return own_memory(root).available; }

int64_t num_killed_for_memory(const std::string& root) {
  const auto killed_in = [&](const MemoryGroups& groups) {
    return number_of_key(root + groups.folder + own_control_group(root, groups) + groups.events, "oom_kill");
  };
  return killed_in(kVersion2) + killed_in(kVersion1);
}

HostFacts host_facts(const std::string& root) {
  HostFacts facts;
  facts.host = host_name();
  facts.processor = value_of_line(root + "/proc/cpuinfo", "model name");
  facts.cores = num_cores();
  facts.host_cores = std::max(facts.cores, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  read_memory(root, facts);
  read_limit(RLIMIT_NOFILE, facts.open_files, facts.most_open_files);
  read_limit(RLIMIT_MEMLOCK, facts.locked_bytes, facts.most_locked_bytes);
  facts.interfaces = interfaces_up(root);
  return facts;
}

}  // namespace braid
