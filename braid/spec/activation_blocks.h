// Parses memory.activation_blocks: of how many blocks of each stage the activations are on the tier of
// memory.activations. These are the first transformer blocks of the stage, with the embedding before them: their
// activations are needed last. Of a recomputed segment it is the input.
//
//   "all"    all blocks
//   "4"      the first four blocks of each stage, or all of a stage that has fewer
//   "4,0"    by stage
#pragma once

#include <string>

#include "braid/spec/run_spec.h"

namespace braid::spec {

inline constexpr const char* kAllBlocks = "all";

// Returns what is wrong with the value for this number of stages, "" if nothing is; 0: the number is unknown.
std::string activation_blocks_fault(const MemorySpec& spec, int num_stages);

// Returns how many of the `num_blocks` blocks of a stage have their activations on a tier; 0 if activations are
// resident. REQUIRES: `spec` has no problems.
int blocks_on_tier(const MemorySpec& spec, int stage, int num_blocks);

}  // namespace braid::spec
