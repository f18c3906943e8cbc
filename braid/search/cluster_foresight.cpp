#include "braid/search/cluster_foresight.h"

#include "braid/predict/least.h"

namespace braid {

Prediction ClusterForesight::predict(const RunSpec& spec) { return predict_run(spec, cluster_, options_); }

double ClusterForesight::least_seconds(const RunSpec& spec) {
  return least_step_seconds(spec, cluster_, options_.formulas);
}

int64_t ClusterForesight::least_bytes(const RunSpec& spec) {
  return least_rank_bytes(spec, cluster_, options_.formulas);
}

}  // namespace braid
