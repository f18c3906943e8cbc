// The layouts of a number of ranks.
#pragma once

#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::verify {

enum class RunSize { Whole, Shrunk };

// Returns `run` on every mesh of `ranks` ranks with every schedule that keeps what is trained, every form of context
// parallelism, every stage of ZeRO, and with and without sequence parallelism, as far as braid trains it. With
// RunSize::Shrunk, the runs are shrunk(). The cheapest run is the first.
std::vector<RunSpec> all_layouts(const RunSpec& run, int ranks, RunSize size);

}  // namespace braid::verify
