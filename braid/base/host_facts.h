// Facts about this host from Linux: cores, memory, limits of this process, network interfaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

struct HostInterface {
  std::string name;
  std::vector<std::string> addresses;  // numeric
  int64_t megabits_per_second = 0;     // 0: it does not say
};

struct HostFacts {
  std::string host;       // as it calls itself
  std::string processor;  // empty where the system does not say
  int cores = 1;          // that this process may run on
  // Memory: of the machine, or what this container may have where that is less; and how much of the machine's is free.
  int64_t memory_bytes = 0, free_memory_bytes = 0;
  int64_t shared_memory_bytes = 0;                  // of /dev/shm; 0: there is none
  int64_t open_files = 0, most_open_files = 0;      // soft limit and hard limit; -1, here and below: none
  int64_t locked_bytes = 0, most_locked_bytes = 0;  // the same of memory that may be locked
  std::vector<HostInterface> interfaces;            // that are up and have an address, by name
};
template <class Pack>
void members(Pack& pack, HostInterface& interface) {
  pack(interface.name, interface.addresses, interface.megabits_per_second);
}
template <class Pack>
void members(Pack& pack, HostFacts& facts) {
  pack(facts.host, facts.processor, facts.cores, facts.memory_bytes, facts.free_memory_bytes, facts.shared_memory_bytes,
       facts.open_files, facts.most_open_files, facts.locked_bytes, facts.most_locked_bytes, facts.interfaces);
}

// `root` stands before the paths of /proc, /sys and /dev that are read.
HostFacts host_facts(const std::string& root = "");

// Memory that a process may still use: MemAvailable, or what its control group (version 2 or 1) and that group's
// parents leave beside page cache where that is less. 0: the system does not say.
int64_t available_memory_bytes(const std::string& root = "");

}  // namespace braid
