// A sum over categories.
#include "braid/plan/rank_memory.h"

namespace braid::plan {

int64_t RankMemory::total() const {
  int64_t all = 0;
  for (const MemoryPart& part : kMemoryParts) all += this->*part.bytes;
  return all;
}

}  // namespace braid::plan
