#include "braid/predict/prediction.h"

#include <algorithm>

namespace braid {

double StepSeconds::total() const { return compute + tensor + context + pipeline + data + optimizer; }

const RankMemory& Prediction::fullest() const { return *std::ranges::max_element(memory, {}, &RankMemory::total); }

bool Prediction::fits() const {
  return std::ranges::all_of(memory, [&](const RankMemory& rank) { return rank.total() <= memory_bytes; });
}

}  // namespace braid
