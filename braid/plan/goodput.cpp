// Young's and Daly's formulas, and their limits without failures.
#include "braid/plan/goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/plan/model_states.h"

namespace braid::plan {

double mean_between_failures(double mtbf_per_device, int64_t num_devices) {
  return mtbf_per_device / static_cast<double>(num_devices);
}

double goodput(const FailureModel& model, double interval) {
  if (std::isinf(interval)) return model.mean_between == 0 ? 1 : 0;  // without saves a failure undoes the whole run
  if (model.mean_between == 0) return interval / (interval + model.stall);
  const double mean = model.mean_between;
  if (interval + model.stall == 0) return std::exp(-model.restart / mean);
  return interval / (mean * std::exp(model.restart / mean) * std::expm1((interval + model.stall) / mean));
}

double young_interval(const FailureModel& model) { return std::sqrt(2 * model.stall * model.mean_between); }

double daly_interval(const FailureModel& model) {
  if (model.mean_between == 0) return std::numeric_limits<double>::infinity();
  const double share = model.stall / (2 * model.mean_between);
  if (share >= 1) return model.mean_between;
  return young_interval(model) * (1 + std::sqrt(share) / 3 + share / 9) - model.stall;
}

double save_interval(const FailureModel& model) { return std::max(daly_interval(model), model.save); }

double share_without_waiting(double mtbf_per_node, int64_t num_nodes, int64_t spares, double repair_seconds) {
  const double mean = repair_seconds * static_cast<double>(num_nodes) / mtbf_per_node;
  if (mean == 0) return 1;
  // Terms are computed in logarithms, because e^-mean underflows when hundreds of nodes are under repair.
  double log_term = -mean, share = std::exp(log_term);
  for (int64_t broken = 1; broken <= spares; ++broken) {
    log_term += std::log(mean / static_cast<double>(broken));
    share += std::exp(log_term);
  }
  return std::min(share, 1.0);
}

double checkpoint_bytes(const RunSpec& spec, const Cluster& cluster) {
  RunSpec whole = spec;
  whole.mesh = {};
  whole.pipeline = {};
  whole.sync = {};
  if (spec.train.dtype != DType::Float64) whole.train.dtype = DType::Float32;
  RunLayout layout = layout_of(whole, cluster, FormulaSet::Braid);
  layout.aligned_to = 1;  // files have no padding
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
  const double copy = 2 * of_rank / cluster.devices.front().memory_bytes_per_second;  // each byte is read and written
  model.stall = spec.checkpoint.async ? cluster.disk.save_seconds + copy : model.save;
  return model;
}

}  // namespace braid::plan
