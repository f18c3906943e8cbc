// The record of a serial run: every value, gradient and parameter of its steps, as whole tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/model/graph.h"
#include "braid/verify/differences.h"

namespace braid::verify {

struct RecordedTensor {
  at::Tensor whole;
  double scale = 0;
  // The difference of each number that rounding of its gradients explains (update_slack.h); undefined: none.
  at::Tensor slack = {};
};
using RecordedTensors = std::map<std::string, RecordedTensor>;  // by name of the parameter

// A value of a microbatch, which its dropout key names: the key differs between all microbatches of a run.
struct ValuePlace {
  uint64_t microbatch = 0;
  int subject = 0;
  Phase phase = Phase::Forward;  // or Backward: the gradient; or Data
  auto operator<=>(const ValuePlace&) const = default;
};

struct RecordedStep {
  double loss = 0;
  double grad_norm = 0;  // of the gradients below, before clipping; these have the loss scale
  double learning_rate = 0, loss_scale = 1;
  uint64_t sample_hash = 0;
  RecordedTensors gradients, masters, weights;
};

struct Recording {
  RecordedTensors start;
  std::map<std::string, model::WeightDecay> decays;  // by name of the parameter
  std::vector<RecordedStep> steps;
  std::map<ValuePlace, RecordedTensor> values;
  std::map<uint64_t, int64_t> step_of;  // by microbatch; counted from 1
};

}  // namespace braid::verify
