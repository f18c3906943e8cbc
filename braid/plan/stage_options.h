// The choices of recomputation, and of activations on their tier, that may be best for the stages of a run, with their
// memory and time.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/recompute_chain.h"
#include "braid/plan/run_layout.h"

namespace braid::plan {

// The choice for one stage, or for several stages that one rank holds.
struct StageOption {
  double bytes = 0;                       // the most that the stage's activations need on its rank
  double seconds = 0;                     // to recompute and to wait for the tier, for each microbatch
  std::vector<std::string> entries = {};  // of memory.recompute, by stage
  std::vector<int> on_tier = {};          // memory.activation_blocks, by stage
};

// Returns the chain of a stage, with the predicted times. Blocks may move if the run's memory.activations is a tier.
// REQUIRES: the stages of `run` recompute nothing.
RecomputeChain timed_chain(const PlannedRun& run, int stage);

// Returns the options of one stage, the fastest first. Each later one needs fewer bytes. `in_flight`: the most
// microbatches of the stage that are in flight at a time. REQUIRES: the stages of `run` recompute nothing.
std::vector<StageOption> stage_options(const PlannedRun& run, int stage, int in_flight);

// Returns the options of two groups of stages together. The bytes add up, as if both had their peaks at once.
std::vector<StageOption> together(const std::vector<StageOption>& some, const std::vector<StageOption>& others);

}  // namespace braid::plan
