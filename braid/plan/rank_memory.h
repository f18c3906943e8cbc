// The predicted peak memory of a rank, by category.
#pragma once

#include <cstdint>

namespace braid::plan {

// Bytes, at the moment of the step at which their sum is largest.
struct RankMemory {
  int64_t parameters = 0;  // weights as the model computes with them
  int64_t gradients = 0;
  int64_t moments = 0;        // all that the optimizer keeps, float32 masters of narrow weights included
  int64_t activations = 0;    // saved for backward, and what backward works with
  int64_t communication = 0;  // tensors on their way between stages, weights gathered

  int64_t total() const;
  bool operator==(const RankMemory&) const = default;
};

struct MemoryPart {
  const char* name;
  int64_t RankMemory::*bytes;
};
inline constexpr MemoryPart kMemoryParts[] = {{"parameters", &RankMemory::parameters},
                                              {"gradients", &RankMemory::gradients},
                                              {"moments", &RankMemory::moments},
                                              {"activations", &RankMemory::activations},
                                              {"communication", &RankMemory::communication}};

}  // namespace braid::plan
