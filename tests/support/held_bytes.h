// The memory that this process holds, for tests that something is not kept.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Belongs to the sanitizer's library. Compilers install it without its header.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace braid {

// Returns the resident bytes; under a sanitizer those allocated. AddressSanitizer keeps freed memory resident for a
// while, and ThreadSanitizer has shadow memory.
inline size_t held_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return __sanitizer_get_current_allocated_bytes();
#else
  size_t pages[2] = {};
  std::ifstream("/proc/self/statm") >> pages[0] >> pages[1];
  return pages[1] * static_cast<size_t>(sysconf(_SC_PAGESIZE));
#endif
}

}  // namespace braid
