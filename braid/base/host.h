// The machine that this process runs on.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

namespace braid {

// Returns the number of cores that the calling thread may run on, at least 1.
inline int num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // false on machines with more than a thousand cores
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  return std::max(1, known ? CPU_COUNT(&cores) : static_cast<int>(std::thread::hardware_concurrency()));
}

// Returns the name of this host, or "unknown".
inline std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace braid
