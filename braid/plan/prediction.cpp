// Sums over the parts of a step and of a rank's memory, and the fullest rank.
#include "braid/plan/prediction.h"

#include <algorithm>
#include <utility>

#include "braid/base/text.h"

namespace braid::plan {

std::vector<std::string> RankMemory::parts_text() const {
  std::vector<std::string> parts;
  for (const MemoryPart& part : kMemoryParts) {
    const auto bytes = static_cast<double>(this->*part.bytes);
    if (bytes > 0) parts.push_back(cat(part.name, " ", human_bytes(bytes)));
  }
  return parts;
}

int64_t RankMemory::total() const {
  int64_t all = 0;
  for (const MemoryPart& part : kMemoryParts) all += this->*part.bytes;
  return all;
}

double StepSeconds::total() const {
  double all = 0;
  for (const StepPart& part : kStepParts) all += this->*part.seconds;
  return all;
}

const RankMemory& Prediction::fullest() const { return *std::ranges::max_element(memory, {}, &RankMemory::total); }

int64_t Prediction::most_bytes() const { return std::max(fullest().total(), server_bytes); }

bool Prediction::fits() const {
  if (!servers_fit()) return false;
  if (host_bytes > 0 && offloaded_bytes > host_bytes) return false;
  return std::ranges::all_of(memory, [&](const RankMemory& rank) { return rank.total() <= memory_bytes; });
}

Prediction of_both_replicas(Prediction one, Prediction other) {
  if (other.step_seconds() > one.step_seconds()) std::swap(one, other);
  one.bubble = std::max(one.bubble, other.bubble);
  for (size_t rank = 0; rank < one.memory.size(); ++rank) {
    if (other.memory[rank].total() > one.memory[rank].total()) one.memory[rank] = other.memory[rank];
  }
  return one;
}

}  // namespace braid::plan
