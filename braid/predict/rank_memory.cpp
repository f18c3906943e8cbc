// A sum over categories.
#include "braid/predict/rank_memory.h"

namespace braid {

int64_t RankMemory::total() const {
  int64_t all = 0;
  for (const MemoryPart& part : kMemoryParts) all += this->*part.bytes;
  return all;
}

}  // namespace braid
