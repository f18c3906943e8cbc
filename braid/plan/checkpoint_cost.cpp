// Bytes of a checkpoint over the cluster's disks.
#include "braid/plan/checkpoint_cost.h"

#include <algorithm>

#include "braid/plan/model_states.h"

namespace braid::plan {

double checkpoint_bytes(const RunSpec& spec, const Cluster& cluster) {
  RunSpec whole = spec;
  whole.mesh = {};
  whole.pipeline = {};
  whole.sync = {};
  if (spec.train.dtype != DType::Float64) whole.train.dtype = DType::Float32;
  RunLayout layout = layout_of(whole, cluster, FormulaSet::Braid);
  layout.aligned_to = 1;  // files have no gaps
  const StateBytes bytes =
      held_bytes(whole, layout, FormulaSet::Braid, stage_parameters(whole, layout, layout.stages[0]));
  return bytes.weights + bytes.optimizer;
}

FailureModel failure_model(const RunSpec& spec, const Cluster& cluster) {
  FailureModel model;
  const int64_t ranks = num_ranks(spec.mesh);
  const double mtbf = cluster.failures.mtbf_seconds_per_device;
  if (mtbf > 0) model.mean_between = mean_between_failures(mtbf, ranks);
  model.restart = cluster.failures.restart_seconds;
  const double of_rank = checkpoint_bytes(spec, cluster) / static_cast<double>(ranks);
  model.save = cluster.disk.save_seconds;
  if (cluster.disk.write_bytes_per_second > 0) {
    const int of_node = layout_on_one_stage(spec, cluster, FormulaSet::Braid).most_of_node;
    model.save += of_rank * of_node / cluster.disk.write_bytes_per_second;
  }
  const double copy = 2 * of_rank / cluster.devices.front().memory_bytes_per_second;  // read and written
  model.stall = spec.checkpoint.async ? cluster.disk.save_seconds + copy : model.save;
  return model;
}

}  // namespace braid::plan
