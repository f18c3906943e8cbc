// An elementwise update with its rates. Trainers and parameter servers share it, so a bulk synchronous server makes the
// trainer's update.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "braid/base/errors.h"
#include "braid/optim/element_update.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

struct ElementRule {
  OptimizerKind kind = OptimizerKind::Sgd;  // one of those that update element by element
  double momentum = 0;                      // Sgd
  double beta1 = 0.9, beta2 = 0.999;        // Lion, AdamW
  double eps = 1e-8;                        // Adagrad, AdamW
  double weight_decay = 0;

  // Returns the names of its per-element states: "adamw.first_moment", "adamw.second_moment".
  std::vector<const char*> state_names() const {
    switch (kind) {
      case OptimizerKind::Adagrad:
        return {"adagrad.squares"};
      case OptimizerKind::Lion:
        return {"lion.momentum"};
      case OptimizerKind::AdamW:
        return {"adamw.first_moment", "adamw.second_moment"};
      default:
        break;
    }
    return momentum > 0 ? std::vector{"sgd.momentum"} : std::vector<const char*>{};
  }
  int num_states() const { return static_cast<int>(state_names().size()); }
};

// Returns the rule of a run. REQUIRES: optimizer.kind updates element by element.
inline ElementRule element_rule(const OptimizerSpec& spec) {
  check(spec.kind != OptimizerKind::Muon, "an elementwise update is no matrix's");
  return {.kind = spec.kind,
          .momentum = spec.momentum,
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .eps = spec.eps,
          .weight_decay = spec.weight_decay};
}

// The values shared by all elements of one update.
struct ElementStep {
  double lr = 0;
  double grad_scale = 1;
  double weight_decay = 0;
  int64_t step = 1;  // of these elements, from 1: AdamW's t
};

// Formed in double and rounded once.
template <class Factors>
Factors factors_of(const ElementRule& rule, const ElementStep& step) {
  using T = typename Factors::Number;
  const T grad_scale = static_cast<T>(step.grad_scale), decay = static_cast<T>(step.weight_decay),
          lr = static_cast<T>(step.lr), keep = static_cast<T>(1 - step.lr * step.weight_decay),
          eps = static_cast<T>(rule.eps);
  const T beta1 = static_cast<T>(rule.beta1), fresh1 = static_cast<T>(1 - rule.beta1);
  const T beta2 = static_cast<T>(rule.beta2), fresh2 = static_cast<T>(1 - rule.beta2);
  if constexpr (std::is_same_v<Factors, DescentFactors<T>>) {
    return {grad_scale, decay, lr};
  } else if constexpr (std::is_same_v<Factors, MomentumFactors<T>>) {
    return {grad_scale, decay, static_cast<T>(rule.momentum), lr};
  } else if constexpr (std::is_same_v<Factors, AdagradFactors<T>>) {
    return {grad_scale, decay, lr, eps};
  } else if constexpr (std::is_same_v<Factors, LionFactors<T>>) {
    return {keep, grad_scale, beta1, fresh1, beta2, fresh2, lr};
  } else {
    static_assert(std::is_same_v<Factors, AdamWFactors<T>>);
    const auto t = static_cast<double>(step.step);
    return {
        .keep = keep,
        .grad_scale = grad_scale,
        .beta1 = beta1,
        .beta2 = beta2,
        .fresh1 = fresh1,
        .fresh2 = fresh2,
        .step_size = static_cast<T>(step.lr / (1 - std::pow(rule.beta1, t))),
        .root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(rule.beta2, t))),
        .eps = eps,
    };
  }
}

// Calls `call` with a std::type_identity of the struct of factors that `rule` updates by, for elements of type T.
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

// One after another, on the calling thread.
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
