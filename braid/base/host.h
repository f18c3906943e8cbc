// The machine at hand. It knows nothing of accelerators.
#pragma once

#include <sched.h>

#include <algorithm>
#include <thread>

namespace braid {

// Cores that the calling thread may run on, at least 1.
inline int num_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;  // not on machines with more than a thousand
  return std::max(1, known ? CPU_COUNT(&cores) : static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace braid
