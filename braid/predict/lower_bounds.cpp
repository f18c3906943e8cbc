#include "braid/predict/lower_bounds.h"

#include <algorithm>
#include <limits>

#include "braid/predict/model_states.h"
#include "braid/predict/predict_run.h"
#include "braid/predict/stage_passes.h"

namespace braid {
double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  RunLayout layout = layout_on_one_stage(spec, seen, formulas);
  double pass = std::numeric_limits<double>::infinity();
  for (size_t kind = 0; kind < seen.devices.size(); ++kind) {
    layout.stages[0].devices = kind;
    pass = std::min(pass, stage_passes(spec, layout, seen, formulas)[0].all().total());
  }
  return layout.microbatches * pass / spec.mesh.pipe;
}

int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const RunLayout layout = layout_on_one_stage(spec, cluster, formulas);
  const StateBytes bytes =
      sharded(state_bytes(spec.train.dtype, spec.optimizer.kind, formulas), spec.sync.zero, num_shards(spec, layout));
  const double parameters = stage_parameters(spec, layout, layout.stages[0]);
  return static_cast<int64_t>(parameters * bytes.total() / spec.mesh.pipe);
}

}  // namespace braid
