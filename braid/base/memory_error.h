// Errors of ranks that run out of memory. MemoryError has the numbers for an explanation.
#pragma once

#include <cstdint>
#include <string>

#include "braid/base/errors.h"

namespace braid {

struct MemoryShortage {
  int rank = -1;            // rank of the world whose allocation it was
  int64_t held_bytes = 0;   // that the rank held then
  int64_t asked_bytes = 0;  // that it asked for; 0: unknown
  int64_t limit_bytes = 0;  // memory.limit_gb; 0: the system refused the memory
};

// Exit code 3, like any RunError.
class MemoryError : public RunError {
 public:
  MemoryError(const std::string& why, const MemoryShortage& shortage) : RunError(why), shortage_(shortage) {}
  const MemoryShortage& shortage() const { return shortage_; }

 private:
  MemoryShortage shortage_;
};

// A rank process that the system has killed because its control group had no memory left. Thrown on the rank's host.
class KilledForMemory : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace braid
