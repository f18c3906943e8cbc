// The interface through which a search gets predictions of layouts.
#pragma once

#include <cstdint>
#include <string>

#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

class Predictor {
 public:
  virtual ~Predictor() = default;

  virtual Prediction predict(const RunSpec& spec) = 0;
  // The cut into as many stages as `spec` has whose slowest rank computes least, as pipeline.partition says it.
  virtual std::string balanced_partition(const RunSpec& spec) = 0;
  // Shares of the batch in proportion to the speed of data ranks, as mesh.batch_shares says them. `spec` has equal
  // ones.
  virtual std::string balanced_shares(const RunSpec& spec) = 0;
  // Bounds that cost little. Never more than the step of predict(spec) takes, and the same for all layouts of the same
  // work (layout_point.h).
  virtual double least_seconds(const RunSpec& spec) = 0;
  // Never more than the fullest rank of predict(spec) holds, whatever is computed again.
  virtual int64_t least_bytes(const RunSpec& spec) = 0;
};

}  // namespace braid::plan
