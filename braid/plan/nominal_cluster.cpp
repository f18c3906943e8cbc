#include "braid/plan/nominal_cluster.h"

#include <exception>
#include <utility>

#include "braid/plan/predict_run.h"
#include "braid/spec/partition.h"

namespace braid::plan {

Cluster nominal_cluster(const RunSpec& spec) {
  constexpr double kUnlimited = 1e15;  // bytes
  Cluster cluster;
  cluster.name = "this host";
  DeviceGroup group;
  group.per_node = static_cast<int>(spec::num_world_ranks(spec));
  group.shared_cores = true;
  group.memory_bytes = kUnlimited;
  group.memory_bytes_per_second = 1e10;
  group.peaks.push_back({spec.train.dtype, 1e11});
  cluster.devices.push_back(group);
  cluster.node = cluster.network = {5e9, 1e-6};
  cluster.host = {kUnlimited, 1e10};
  cluster.disk = {1e9, 1e9};
  return cluster;
}

std::optional<Prediction> nominal_prediction(RunSpec spec) {
  const Cluster cluster = nominal_cluster(spec);
  return nominal_prediction(std::move(spec), cluster);
}

std::optional<Prediction> nominal_prediction(RunSpec spec, const Cluster& cluster) {
  if (spec::is_measured(spec.pipeline)) spec.pipeline.partition = "even";
  if (!prediction_problems(spec, cluster).empty()) return std::nullopt;
  try {
    return predict_run(spec, cluster);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace braid::plan
