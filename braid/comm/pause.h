// The pause between two reads of a flag that is about to change.
#pragma once

#if !defined(__x86_64__)
#include <thread>
#endif

namespace braid::comm {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace braid::comm
