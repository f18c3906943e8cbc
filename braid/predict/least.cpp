#include "braid/predict/least.h"

#include "braid/predict/model_states.h"
#include "braid/predict/predict_run.h"
#include "braid/predict/stage_passes.h"

namespace braid {
namespace {

// All of the model on one stage, whose blocks do again what the first stage of the run does.
RunSpec on_one_stage(RunSpec spec) {
  spec.pipeline = {};
  spec.mesh.pipe = 1;
  return spec;
}

}  // namespace

double least_step_seconds(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const RunSpec whole = on_one_stage(spec);
  const Cluster seen = with_cores_of_ranks(cluster, num_ranks(spec.mesh));
  const RunLayout layout = layout_of(whole, seen, formulas);
  const double pass = stage_passes(whole, layout, seen, formulas)[0].all().total();
  return layout.microbatches * pass / spec.mesh.pipe;
}

int64_t least_rank_bytes(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const RunSpec whole = on_one_stage(spec);
  const RunLayout layout = layout_of(whole, cluster, formulas);
  const StateBytes bytes =
      sharded(state_bytes(spec.train.dtype, spec.optimizer.kind, formulas), spec.sync.zero, num_shards(spec, layout));
  const double parameters = stage_parameters(whole, layout, layout.stages[0]);
  return static_cast<int64_t>(parameters * bytes.total() / spec.mesh.pipe);
}

}  // namespace braid
