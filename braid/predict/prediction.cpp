#include "braid/predict/prediction.h"

#include <algorithm>

namespace braid {

double StepSeconds::total() const {
  double all = 0;
  for (const StepPart& part : kStepParts) all += this->*part.seconds;
  return all;
}

const RankMemory& Prediction::fullest() const { return *std::ranges::max_element(memory, {}, &RankMemory::total); }

bool Prediction::fits() const {
  if (host_bytes > 0 && offloaded_bytes > host_bytes) return false;
  return std::ranges::all_of(memory, [&](const RankMemory& rank) { return rank.total() <= memory_bytes; });
}

}  // namespace braid
