// Explains the errors of a run for whose ranks there was too little memory.
#pragma once

#include <functional>

#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Calls run(), which runs the ranks of `spec`. To an error of a rank for which there was no memory, adds what was
// predicted for that rank, by category, and the fastest changes that fit, each a line of overrides. If the system has
// killed processes of this host's control group for memory, throws a KilledForMemory in place of the error of a killed
// rank, with what the rank held then. `spec` has no "auto" values.
void with_memory_advice(const RunSpec& spec, const spec::HostLimits& limits, const std::function<void()>& run);

}  // namespace braid::train
