// The closed forms of pipeline_outcome.h.
#pragma once

#include "braid/plan/pipeline_outcome.h"

namespace braid::plan {

// Everything of the outcome; `traits` are the schedule's.
PipelineOutcome estimated_outcome(const PipelineQuestion& question, const ScheduleTraits& traits);

}  // namespace braid::plan
