// Foresight of a cluster: predictions by closed forms while a search goes on.
#pragma once

#include "braid/cluster/cluster.h"
#include "braid/predict/predict_run.h"
#include "braid/search/foresight.h"

namespace braid {

class ClusterForesight final : public Foresight {
 public:
  // `cluster` outlives this.
  ClusterForesight(const Cluster& cluster, PredictOptions options) : cluster_(cluster), options_(options) {}

  Prediction predict(const RunSpec& spec) override;
  double least_seconds(const RunSpec& spec) override;
  int64_t least_bytes(const RunSpec& spec) override;

  const PredictOptions& options() const { return options_; }

 private:
  const Cluster& cluster_;
  const PredictOptions options_;
};

}  // namespace braid
