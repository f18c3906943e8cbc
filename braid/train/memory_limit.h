// A run within memory.limit_gb: what "auto" tiers become, and the refusal of what does not fit.
#pragma once

#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the run with its "auto" tiers resolved: resident if every rank's predicted memory is within memory.limit_gb,
// else on disk if the run allows that and holds less there: optimizer states, then gradients or parameters too, then
// both. Without a limit, or if the run cannot be predicted, returns
// it unchanged. Throws ConfigError if a rank would exceed the limit; the error has the bytes of each category and the
// fastest changes that fit. A measured partition, which keeps to the limit by itself, is not refused.
RunSpec within_memory_limit(const RunSpec& spec, const spec::HostLimits& limits);

}  // namespace braid::train
