// The changes of a run after which its ranks fit in a limit of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::plan {

// A key of a tier, as an override that moves it to disk.
struct DiskTier {
  const char* override;
  Tier MemorySpec::*tier;
};
// Returns the sets of tiers that can be on disk: optimizer states, and with them gradients, parameters or both.
const std::vector<std::vector<DiskTier>>& disk_tiers();

// A change of a run as overrides, "memory.optimizer=disk memory.recompute=full".
struct FittingChange {
  std::string overrides;
  int64_t bytes = 0;  // predicted peak of the fullest rank
  double times = 1;   // predicted time of a step, as a multiple of that without the change (nominal_cluster.h)
};

inline constexpr size_t kMostChangesNamed = 3;  // in an error

// Tries tiers, recomputation (the fastest policies that fit, fastest_recompute.h, among others), ZeRO stages and
// microbatches, and every combination of them. Returns up to `most` changes with which no rank's predicted memory is
// more than `limit` bytes, the fastest first. None of them contains another one, none changes more keys than a faster
// one that it has all keys of, and no two change the same keys. `is_legal` says whether a run can be trained. REQUIRES:
// `spec` can be predicted.
std::vector<FittingChange> fitting_changes(const RunSpec& spec, int64_t limit, size_t most,
                                           const std::function<bool(const RunSpec&)>& is_legal);

}  // namespace braid::plan
