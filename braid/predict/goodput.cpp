#include "braid/predict/goodput.h"

#include <cmath>
#include <limits>

namespace braid {

double mean_between_failures(double mtbf_per_device, int64_t num_devices) {
  return mtbf_per_device / static_cast<double>(num_devices);
}

double goodput(const FailureModel& model, double interval) {
  if (model.mean_between == 0) return std::isinf(interval) ? 1 : interval / (interval + model.stall);
  const double mean = model.mean_between;
  return interval / (mean * std::exp(model.restart / mean) * std::expm1((interval + model.stall) / mean));
}

double young_interval(const FailureModel& model) { return std::sqrt(2 * model.stall * model.mean_between); }

double daly_interval(const FailureModel& model) {
  if (model.mean_between == 0) return std::numeric_limits<double>::infinity();
  const double share = model.stall / (2 * model.mean_between);
  if (share >= 1) return model.mean_between;
  return young_interval(model) * (1 + std::sqrt(share) / 3 + share / 9) - model.stall;
}

double share_without_waiting(double mtbf_per_node, int64_t num_nodes, int64_t spares, double repair_seconds) {
  const double mean = repair_seconds * static_cast<double>(num_nodes) / mtbf_per_node;
  double term = std::exp(-mean), share = term;
  for (int64_t broken = 1; broken <= spares; ++broken) {
    term *= mean / static_cast<double>(broken);
    share += term;
  }
  return share;
}

}  // namespace braid
