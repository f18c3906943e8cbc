// The [optimizer] section: the update and its rates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/spec/word.h"

namespace braid {

// Parameters with rates of their own.
struct ParameterGroup {
  std::string match;                   // "blocks.*.bias": names, with the wildcards * and ?
  double lr_scale = 1;                 // times the learning rate
  std::optional<double> weight_decay;  // nothing: as without the group

  bool operator==(const ParameterGroup&) const = default;
};

enum class OptimizerKind { AdamW, Sgd, Adagrad, Lion, Muon };
constexpr auto words(OptimizerKind) {
  return std::to_array<std::string_view>({"adamw", "sgd", "adagrad", "lion", "muon"});
}

// The learning rate after the warm-up.
enum class RateSchedule { Cosine, Linear, Constant, Wsd, InverseSqrt };
constexpr auto words(RateSchedule) {
  return std::to_array<std::string_view>({"cosine", "linear", "constant", "wsd", "inverse-sqrt"});
}

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::AdamW;
  double lr = 1e-3;
  RateSchedule schedule = RateSchedule::Cosine;
  int warmup_steps = 0;
  int decay_steps = 0;             // where the decay ends, counted from the first step of all; 0: at train.steps
  int cooldown_steps = 0;          // wsd: length of the decay; 0: a tenth of its end
  double final_lr_fraction = 0.1;  // of lr, at the last step of the decay and after it
  double momentum = 0.95;          // sgd and muon
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;                // none on norms and biases
  double clip_norm = 1.0;                   // global gradient norm; 0: no clipping
  std::vector<ParameterGroup> groups = {};  // a parameter has the rates of the first that matches

  bool operator==(const OptimizerSpec&) const = default;
};

// Returns true if the learning rate's decay ends.
inline bool has_decay_end(const OptimizerSpec& spec) {
  return spec.schedule != RateSchedule::Constant && spec.schedule != RateSchedule::InverseSqrt;
}

// The number of steps after which the decay is over, of a run of `num_steps`.
constexpr int decay_end(const OptimizerSpec& spec, int num_steps) {
  return spec.decay_steps > 0 ? spec.decay_steps : num_steps;
}

// Steps of the decay at its end, under "wsd": no more than are left after the warm-up.
inline int cooldown_length(const OptimizerSpec& spec, int num_steps) {
  const int end = decay_end(spec, num_steps),
            wanted = spec.cooldown_steps > 0 ? spec.cooldown_steps : end / 10 + (end % 10 > 0);
  return wanted < end - spec.warmup_steps ? wanted : end - spec.warmup_steps;
}

}  // namespace braid
