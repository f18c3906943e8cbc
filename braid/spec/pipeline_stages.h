// The stages of a configured pipeline, before its schedule is made. Names and traits of schedules are one table, in
// schedule/generators.h.
#pragma once

#include <string>

#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// The traits of pipeline.schedule; null for file:PATH and for names nobody knows.
const ScheduleTraits* traits_of(const PipelineSpec& spec);

// The PATH of "file:PATH", empty for a schedule that has a name.
std::string schedule_file(const PipelineSpec& spec);

// Stages per rank; 0 when only the file knows.
int chunks_per_rank(const PipelineSpec& spec);
// mesh.pipe x chunks_per_rank().
int num_stages(const RunSpec& spec);

}  // namespace braid::spec
