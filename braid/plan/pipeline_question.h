// The pipeline of a run in the form that pipeline_outcome() predicts.
#pragma once

#include <vector>

#include "braid/plan/pipeline_outcome.h"
#include "braid/plan/rank_shards.h"

namespace braid::plan {

// Returns the question with the times and sizes of the stages of a run, `stages`, and the time to send a tensor to the
// next stage, which is the longest of all stages.
PipelineQuestion pipeline_question(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages);

// Returns the bytes of a tensor that is sent between stages.
double tensor_bytes(const PlannedRun& run);

}  // namespace braid::plan
