// The memory that this process holds, for tests that something is not kept.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

#ifdef __SANITIZE_ADDRESS__
// Belongs to the sanitizer's library. Compilers install it without its header.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace braid {

// Returns the resident bytes; under AddressSanitizer those allocated, because it keeps freed memory resident for a
// while.
inline size_t held_bytes() {
#ifdef __SANITIZE_ADDRESS__
  return __sanitizer_get_current_allocated_bytes();
#else
  size_t pages[2] = {};
  std::ifstream("/proc/self/statm") >> pages[0] >> pages[1];
  return pages[1] * static_cast<size_t>(sysconf(_SC_PAGESIZE));
#endif
}

}  // namespace braid
