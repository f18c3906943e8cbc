#include "braid/predict/least.h"

#include <algorithm>
#include <limits>

#include "braid/predict/model_states.h"
#include "braid/predict/predict_run.h"
#include "braid/predict/stage_passes.h"

namespace braid {
namespace {

// All of the model on one stage, whose blocks do again what all stages of the run do, or nothing where these differ.
// Groups of ranks stay those of the run.
RunLayout on_one_stage(RunLayout layout) {
  StageLoad all = layout.stages[0];
  all.embedding = all.head = true;
  all.blocks = 0;
  for (const StageLoad& stage : layout.stages) {
    all.blocks += stage.blocks;
    if (stage.recompute != layout.stages[0].recompute) all.recompute = {};
  }
  layout.stages = {all};
  return layout;
}

}  // namespace

double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  RunLayout layout = on_one_stage(layout_of(spec, seen, formulas));
  double pass = std::numeric_limits<double>::infinity();
  for (size_t kind = 0; kind < seen.devices.size(); ++kind) {
    layout.stages[0].devices = kind;
    pass = std::min(pass, stage_passes(spec, layout, seen, formulas)[0].all().total());
  }
  return layout.microbatches * pass / spec.mesh.pipe;
}

int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const RunLayout layout = on_one_stage(layout_of(spec, cluster, formulas));
  const StateBytes bytes =
      sharded(state_bytes(spec.train.dtype, spec.optimizer.kind, formulas), spec.sync.zero, num_shards(spec, layout));
  const double parameters = stage_parameters(spec, layout, layout.stages[0]);
  return static_cast<int64_t>(parameters * bytes.total() / spec.mesh.pipe);
}

}  // namespace braid
