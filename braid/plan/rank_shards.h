// The demands of each pipeline stage, and of each rank with all its stages.
#pragma once

#include <vector>

#include "braid/plan/data_exchange.h"
#include "braid/plan/pipeline_outcome.h"
#include "braid/schedule/generators.h"

namespace braid::plan {

// Passes of a microbatch, parameters, and what a schedule holds of activations.
struct StageFacts {
  StagePasses passes;
  StageParameters parameters;
  HeldBytes held;
};

std::vector<StageFacts> stage_facts(const PlannedRun& run, const PartParameters& parts);

// Returns the demands of each pipeline rank; `stages` are the run's.
std::vector<RankShare> rank_shares(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages, const PartParameters& parts);

}  // namespace braid::plan
