// Monotonic time, the only clock braid measures with.
#pragma once

#include <chrono>

namespace braid {

// Seconds since an arbitrary fixed moment; never goes back.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace braid
