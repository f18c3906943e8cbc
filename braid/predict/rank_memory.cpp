#include "braid/predict/rank_memory.h"

namespace braid {

int64_t RankMemory::total() const { return parameters + gradients + moments + activations + communication; }

}  // namespace braid
