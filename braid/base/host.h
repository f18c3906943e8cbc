// The machine at hand.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

namespace braid {

// Cores that the calling thread may run on, at least 1.
inline int num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;  // not on machines with more than a thousand
  return std::max(1, known ? CPU_COUNT(&cores) : static_cast<int>(std::thread::hardware_concurrency()));
}

// As the machine calls itself.
inline std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace braid
