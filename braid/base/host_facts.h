// Facts about this host from Linux: cores, memory, limits of this process, network interfaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

struct HostInterface {
  std::string name;
  std::vector<std::string> addresses;  // numeric
  int64_t megabits_per_second = 0;     // 0: unknown
};

struct HostFacts {
  std::string host;       // name of the host
  std::string processor;  // model of the processor; empty if unknown
  int cores = 1;          // number of cores that this process may run on
  int host_cores = 1;     // number of cores of the host
  // Total memory: that of the machine, or the limit of this container if that is less. Free memory: as
  // available_memory_bytes().
  int64_t memory_bytes = 0, free_memory_bytes = 0;
  int64_t shared_memory_bytes = 0;                  // size of /dev/shm; 0: it does not exist
  int64_t open_files = 0, most_open_files = 0;      // soft and hard limit of open files; -1: unlimited
  int64_t locked_bytes = 0, most_locked_bytes = 0;  // soft and hard limit of locked memory; -1: unlimited
  std::vector<HostInterface> interfaces;            // interfaces that are up and have an address, by name
};
template <class Pack>
void members(Pack& pack, HostInterface& interface) {
  pack(interface.name, interface.addresses, interface.megabits_per_second);
}
template <class Pack>
void members(Pack& pack, HostFacts& facts) {
  pack(facts.host, facts.processor, facts.cores, facts.host_cores, facts.memory_bytes, facts.free_memory_bytes,
       facts.shared_memory_bytes, facts.open_files, facts.most_open_files, facts.locked_bytes, facts.most_locked_bytes,
       facts.interfaces);
}

// Reads the facts of this host. `root` is put in front of the paths of /proc, /sys and /dev that are read.
HostFacts host_facts(const std::string& root = "");

// Returns the bytes of memory that a process may still use; 0 if the system does not report it. This is MemAvailable,
// or less if the process's control group (version 2 or 1) or a parent of that group leaves less. Page cache in a group
// counts as free.
int64_t available_memory_bytes(const std::string& root = "");

// Returns how many processes of this process's control group (version 2 or 1) the system has killed because there was
// no memory; 0 if it does not report that.
int64_t num_killed_for_memory(const std::string& root = "");

}  // namespace braid
