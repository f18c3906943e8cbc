// Bytes of a checkpoint over the cluster's disks.
#include "braid/predict/checkpoint_cost.h"

#include <algorithm>

#include "braid/predict/model_states.h"

namespace braid {

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
  const DeviceGroup& devices = cluster.devices.front();
  const double bytes = checkpoint_bytes(spec, cluster);
  if (spec.checkpoint.async) {
    model.stall = 2 * bytes / static_cast<double>(ranks) / devices.memory_bytes_per_second;  // read and written
  } else if (cluster.disk.write_bytes_per_second > 0) {
    const int of_node = layout_on_one_stage(spec, cluster, FormulaSet::Braid).most_of_node;
    model.stall = bytes / static_cast<double>(ranks) * of_node / cluster.disk.write_bytes_per_second;
  }
  return model;
}

}  // namespace braid
