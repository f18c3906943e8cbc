// A run within memory.limit_gb: what "auto" becomes, and the refusal of what does not fit.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the run with "auto" of the tiers and of memory.recompute replaced: resident and "none" if every rank's
// predicted memory is within memory.limit_gb, else the fastest recomputation that fits, and on disk what does not fit
// in memory or holds up less than that: optimizer states, then gradients or parameters too, then both, as far as the
// run allows that and holds less there. Without a limit, or if the run cannot be predicted, memory.recompute "auto" is
// "none". Throws ConfigError if a rank would exceed the limit; the error has the bytes of each category and the fastest
// changes that fit. A measured partition, which keeps to the limit by itself, is not refused.
RunSpec within_memory_limit(const RunSpec& spec, const spec::HostLimits& limits);

// Returns a sentence for each "auto" of `given` that the limit has replaced by something else than its default.
std::vector<std::string> told_of_memory(const RunSpec& given, const RunSpec& chosen);

}  // namespace braid::train
