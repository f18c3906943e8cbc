// What a search asks about layouts: whoever predicts answers.
#pragma once

#include <cstdint>

#include "braid/predict/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid {

class Foresight {
 public:
  virtual ~Foresight() = default;

  virtual Prediction predict(const RunSpec& spec) = 0;
  // Bounds that cost next to nothing: never more than the step of predict(spec) takes, and never more than the fullest
  // rank of it holds.
  virtual double least_seconds(const RunSpec& spec) = 0;
  virtual int64_t least_bytes(const RunSpec& spec) = 0;
};

}  // namespace braid
