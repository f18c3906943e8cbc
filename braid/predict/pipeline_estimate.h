// The closed forms of pipeline_outcome.h.
#pragma once

#include "braid/predict/pipeline_outcome.h"

namespace braid {

// Everything of the outcome; `traits` are the schedule's.
PipelineOutcome estimated_outcome(const PipelineQuestion& question, const ScheduleTraits& traits);

// The rank of a stage, for any placement; of a mirrored one that of its first copy.
int rank_of_stage(const ScheduleTraits& traits, int num_ranks, int stage);

}  // namespace braid
