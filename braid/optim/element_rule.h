// The rule of an elementwise update, with its constants. Trainers and parameter servers share it, so that a bulk
// synchronous server makes the same update as a trainer.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "braid/base/errors.h"
#include "braid/optim/element_update.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

struct ElementRule {
  OptimizerKind kind = OptimizerKind::Sgd;  // an optimizer that updates element by element
  double momentum = 0;                      // used by Sgd
  double beta1 = 0.9, beta2 = 0.999;        // used by Lion, AdamW
  double eps = 1e-8;                        // used by Adagrad, AdamW
  double weight_decay = 0;
  StateType states = StateType::Float32;  // type of a trainer's states; servers have the masters' type

  // Returns the names of its per-element states: "adamw.first_moment", "adamw.second_moment".
  std::vector<const char*> state_names() const;
  std::vector<StateSign> state_signs() const;
  int num_states() const { return static_cast<int>(state_names().size()); }
};

// Returns the rule of a run's optimizer. REQUIRES: spec.kind updates element by element.
inline ElementRule element_rule(const OptimizerSpec& spec) {
  check(spec.kind != OptimizerKind::Muon, "an elementwise update is no matrix's");
  return {.kind = spec.kind,
          .momentum = spec.momentum,
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .eps = spec.eps,
          .weight_decay = spec.weight_decay,
          .states = spec.state_dtype};
}

// The values shared by all elements of one update.
struct ElementStep {
  double lr = 0;
  double grad_scale = 1;
  double weight_decay = 0;
  int64_t step = 1;  // number of the elements' update, from 1: AdamW's t
};

// Calls `call` with a std::type_identity of the factors struct of `rule`, for elements of type T.
template <class T, class Call>
decltype(auto) with_factors_type(const ElementRule& rule, const Call& call) {
  switch (rule.kind) {
    case OptimizerKind::Adagrad:
      return call(std::type_identity<AdagradFactors<T>>());
    case OptimizerKind::Lion:
      return call(std::type_identity<LionFactors<T>>());
    case OptimizerKind::AdamW:
      return call(std::type_identity<AdamWFactors<T>>());
    default:
      break;
  }
  return rule.momentum > 0 ? call(std::type_identity<MomentumFactors<T>>())
                           : call(std::type_identity<DescentFactors<T>>());
}

inline std::vector<const char*> ElementRule::state_names() const {
  return with_factors_type<float>(*this, [](auto type) {
    const auto& names = decltype(type)::type::kStateNames;
    return std::vector<const char*>(names.begin(), names.end());
  });
}

inline std::vector<StateSign> ElementRule::state_signs() const {
  return with_factors_type<float>(*this, [](auto type) {
    const auto& signs = decltype(type)::type::kStateSigns;
    return std::vector<StateSign>(signs.begin(), signs.end());
  });
}

// Updates the elements one after another, on the calling thread.
template <class Factors, class T>
void update_elements(const Factors& factors, const ElementRange<T>& range) {
  T* __restrict__ weight = range.weight;
  const T* __restrict__ grad = range.grad;
  T* __restrict__ first = range.first;
  T* __restrict__ second = range.second;
  for (int64_t i = 0; i < range.count; ++i) {
    if constexpr (Factors::kStates == 0) element_update(weight[i], grad[i], factors);
    if constexpr (Factors::kStates == 1) element_update(weight[i], grad[i], first[i], factors);
    if constexpr (Factors::kStates == 2) element_update(weight[i], grad[i], first[i], second[i], factors);
  }
}

}  // namespace braid::optim
