// Reads them off the table of schedules.
#include "braid/spec/pipeline_stages.h"

#include <string_view>

namespace braid::spec {
namespace {

constexpr std::string_view kFile = "file:";

}  // namespace

const ScheduleTraits* traits_of(const PipelineSpec& spec) { return find_schedule(spec.schedule); }

std::string schedule_file(const PipelineSpec& spec) {
  return spec.schedule.starts_with(kFile) ? spec.schedule.substr(kFile.size()) : "";
}

int chunks_per_rank(const PipelineSpec& spec) {
  const ScheduleTraits* traits = traits_of(spec);
  return traits ? chunks_of(*traits, {.chunks = spec.chunks}) : spec.chunks;
}

int num_stages(const RunSpec& spec) { return spec.mesh.pipe * chunks_per_rank(spec.pipeline); }

}  // namespace braid::spec
