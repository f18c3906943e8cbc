// pipeline.partition = "measured" made into a list, before any rank starts.
#pragma once

#include <optional>

#include "braid/plan/partition.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// The partition of the run's model for its schedule, by the costs of `units` (stage_profile.h), pipeline.speeds and
// memory.limit_gb. Throws ConfigError when nothing fits the limit.
plan::Partition best_partition(const RunSpec& spec, std::vector<plan::Unit> units);

// Replaces "measured" in `spec` by a list: that of the checkpoint in train.resume, if it has equally many stages, else
// one measured now, which is then returned. Throws as best_partition() does, and IoError.
std::optional<plan::Partition> resolve_partition(RunSpec& spec, int threads);

}  // namespace braid::train
