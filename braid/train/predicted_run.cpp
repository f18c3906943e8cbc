// Predicts a schedule from a file as one with a name that has its stages on the same ranks.
#include "braid/train/predicted_run.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/partition.h"
#include "braid/train/step_schedule.h"

namespace braid::train {

PredictedRun predicted_with(const plan::Cluster& rates, const RunSpec& spec) {
  RunSpec planned = spec;
  plan::PredictOptions options;
  Schedule table;
  if (!spec::schedule_file(spec.pipeline).empty()) {
    table = schedule_table(spec);
    options.table = &table;
    const std::optional<PipelineSpec> like = plan::pipeline_like(table);
    if (!like) throw RunError("no schedule with a name has its stages on the ranks of this table");
    planned.pipeline.schedule = like->schedule;
    planned.pipeline.chunks = like->chunks;
  }
  std::vector<Problem> problems = plan::prediction_problems(planned, rates);
  std::ranges::move(plan::mesh_problems(planned, rates), std::back_inserter(problems));
  if (!problems.empty()) throw ConfigError(std::move(problems));
  PredictedRun all{plan::predict_run(planned, rates, options), {}};
  const auto ranks = static_cast<int>(num_ranks(spec.mesh));
  if (ranks > 1) all.ways = plan::parallelism_table(spec, rates, ranks);
  return all;
}

}  // namespace braid::train
