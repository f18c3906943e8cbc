// The [optimizer] section: the update and its rates.
#pragma once

#include <string>

namespace braid {

struct OptimizerSpec {
  double lr = 1e-3;
  std::string schedule = "cosine";  // cosine, linear or constant, after the warm-up
  int warmup_steps = 0;
  double final_lr_fraction = 0.1;  // of lr, at the last step
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // decoupled; none on norms and biases
  double clip_norm = 1.0;     // global gradient norm; 0: no clipping

  bool operator==(const OptimizerSpec&) const = default;
};

}  // namespace braid
