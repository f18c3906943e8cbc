// The [optimizer] section: the update and its rates.
#pragma once

#include <string>

namespace braid {

struct OptimizerSpec {
  double lr = 1e-3;
  std::string schedule = "cosine";  // cosine, linear or constant, after the warm-up
  int warmup_steps = 0;
  int decay_steps = 0;             // where the decay ends, counted from the first step of all; 0: at train.steps
  double final_lr_fraction = 0.1;  // of lr, at the last step of the decay and after it
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // decoupled; none on norms and biases
  double clip_norm = 1.0;     // global gradient norm; 0: no clipping

  bool operator==(const OptimizerSpec&) const = default;
};

// The number of steps after which the decay is over, of a run of `num_steps`.
constexpr int decay_end(const OptimizerSpec& spec, int num_steps) {
  return spec.decay_steps > 0 ? spec.decay_steps : num_steps;
}

}  // namespace braid
