// The rules between a schedule and the keys that only some schedules read. The schedules themselves check ranks and
// microbatches (schedule/generators.h).
#include <bit>

#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/partition.h"

namespace braid::spec {
namespace {

bool versions_are(const RunSpec& spec, schedule::VersionRule rule) {
  const ScheduleTraits* traits = traits_of(spec.pipeline);
  return traits && traits->versions == rule;
}

// Returns the number of microbatches per update on a rank of a double-buffered schedule.
int update_group(const RunSpec& spec) { return spec.pipeline.group > 0 ? spec.pipeline.group : spec.mesh.pipe; }

}  // namespace

std::vector<CrossRule> schedule_rules() {
  return {
      {{"pipeline.weights", "pipeline.schedule"},
       [](const View& at) {
         return at.spec.pipeline.weights == StageWeights::Own || versions_are(at.spec, schedule::VersionRule::Own);
       },
       [](const View&) { return std::string("must be \"own\" unless pipeline.schedule is \"pipedream\""); }},
      {{"pipeline.chunks", "pipeline.schedule"},
       [](const View& at) {
         return at.spec.pipeline.chunks == 0 || at.spec.pipeline.chunks == chunks_per_rank(at.spec.pipeline);
       },
       [](const View& at) {
         return cat("must be 0 or ", chunks_per_rank(at.spec.pipeline), ", the stages per rank of \"",
                    at.spec.pipeline.schedule, "\"");
       }},
      {{"pipeline.group", "pipeline.schedule", "mesh.pipe", "train.reduction"},
       [](const View& at) {
         const bool summed_by_tree = at.spec.train.reduction == Reduction::Reproducible;
         return !summed_by_tree || !versions_are(at.spec, schedule::VersionRule::DoubleBuffered) ||
                std::has_single_bit(static_cast<unsigned>(update_group(at.spec)));
       },
       [](const View& at) {
         return cat("must be a power of two when train.reduction is \"reproducible\" (0 is mesh.pipe, ",
                    at.spec.mesh.pipe, ")");
       }},
  };
}

}  // namespace braid::spec
