// The [optimizer] section: the update rule, the learning rate and the weight decay.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/base/word.h"

namespace braid {

// Parameters with a learning rate and weight decay of their own, or that are not trained.
struct ParameterGroup {
  std::string match;                   // pattern of names with the wildcards * and ?, "blocks.*.bias"
  double lr_scale = 1;                 // factor on the learning rate
  std::optional<double> weight_decay;  // empty: as without the group
  bool frozen = false;                 // keeps the values that training begins with

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

// The type in which the optimizer's states are stored between updates. Float32 is the masters' type, which is float64
// if train.dtype is. BFloat16 rounds stochastically (optim/stochastic_rounding.h). Int8 has a code of 8 bits for each
// element and a float32 scale for each block of kStateBlock elements (optim/quantized_states.h). Updates compute in the
// masters' type.
enum class StateType { Float32, BFloat16, Int8 };
constexpr auto words(StateType) { return std::to_array<std::string_view>({"float32", "bfloat16", "int8"}); }

inline constexpr int kStateBlock = 64;

// Returns the bytes of an element of a state. Those of a master are `of_master`.
constexpr double state_element_bytes(StateType states, double of_master) {
  if (states == StateType::Int8) return 1 + 4.0 / kStateBlock;
  return states == StateType::BFloat16 ? 2 : of_master;
}

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::AdamW;
  double lr = 1e-3;
  RateSchedule schedule = RateSchedule::Cosine;
  int warmup_steps = 0;
  int decay_steps = 0;             // step at which the decay ends, counted from the run's first; 0: train.steps
  int cooldown_steps = 0;          // wsd: steps of the decay; 0: a tenth of the steps up to its end
  double final_lr_fraction = 0.1;  // fraction of lr at the last step of the decay and after it
  double momentum = 0.95;          // sgd and muon
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;                // not applied to norms and biases
  double clip_norm = 1.0;                   // global gradient norm; 0: no clipping
  std::vector<ParameterGroup> groups = {};  // the first group that matches a parameter applies
  StateType state_dtype = StateType::Float32;

  bool operator==(const OptimizerSpec&) const = default;
};

// Returns true if the decay of the learning rate has an end.
inline bool has_decay_end(const OptimizerSpec& spec) {
  return spec.schedule != RateSchedule::Constant && spec.schedule != RateSchedule::InverseSqrt;
}

// Returns the number of steps after which the decay has ended, in a run of `num_steps`.
constexpr int decay_end(const OptimizerSpec& spec, int num_steps) {
  return spec.decay_steps > 0 ? spec.decay_steps : num_steps;
}

// Returns the steps of the decay under "wsd": at most those left after the warm-up.
inline int cooldown_length(const OptimizerSpec& spec, int num_steps) {
  const int end = decay_end(spec, num_steps),
            wanted = spec.cooldown_steps > 0 ? spec.cooldown_steps : end / 10 + (end % 10 > 0);
  return wanted < end - spec.warmup_steps ? wanted : end - spec.warmup_steps;
}

}  // namespace braid
