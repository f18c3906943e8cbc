// The whole model at its fastest, shared out evenly.
#include "braid/plan/lower_bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "braid/plan/cores_of_ranks.h"
#include "braid/plan/model_states.h"
#include "braid/plan/stage_passes.h"

namespace braid::plan {
namespace {

// Returns the parts of a model that may be on different kinds of devices.
std::vector<StageLoad> parts_of(const StageLoad& all, size_t num_kinds) {
  if (num_kinds == 1) return {all};
  StageLoad blocks = all;
  blocks.embedding = blocks.head = false;
  return {blocks, {.embedding = true}, {.head = true}};
}

}  // namespace

double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  RunLayout layout = layout_on_one_stage(spec, seen, formulas);
  const std::vector<StageLoad> parts = parts_of(layout.stages[0], seen.devices.size());
  std::vector<double> least(parts.size(), std::numeric_limits<double>::infinity());
  layout.stages = parts;
  for (size_t kind = 0; kind < seen.devices.size(); ++kind) {
    for (StageLoad& part : layout.stages) part.devices = kind;
    const std::vector<StagePasses> passes = stage_passes(spec, layout, seen, formulas);
    for (size_t i = 0; i < parts.size(); ++i) least[i] = std::min(least[i], passes[i].all().total());
  }
  return layout.microbatches * std::accumulate(least.begin(), least.end(), 0.0) / spec.mesh.pipe;
}

int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const RunLayout layout = layout_on_one_stage(spec, cluster, formulas);
  StateBytes bytes = held_bytes(spec, layout, formulas, stage_parameters(spec, layout, layout.stages[0]));
  if (spec.memory.offload != OffloadTo::None) bytes.optimizer = 0;
  return static_cast<int64_t>(bytes.total() / spec.mesh.pipe);
}

}  // namespace braid::plan
