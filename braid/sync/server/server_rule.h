// The updates that servers know, elementwise on raw memory: no tensors, no messages.
// Sources: Adagrad as in Dean et al., "Large Scale Distributed Deep Networks" (NIPS 2012), section 4.1 (Duchi et al.
// 2011); AdamW as in optim/adamw.h, so a bulk synchronous server makes the update that the trainer would.
#pragma once

#include <cmath>
#include <cstdint>

#include "braid/optim/adamw_update.h"

namespace braid {

struct ServerRule {
  enum class Kind {
    Sgd,      // w -= lr g
    Adagrad,  // s += g g;  w -= lr g / (sqrt(s) + eps)
    AdamW,
  };
  Kind kind = Kind::Sgd;
  double beta1 = 0.9, beta2 = 0.999;  // AdamW
  double eps = 1e-8;                  // Adagrad, AdamW
  double weight_decay = 0;            // AdamW

  int num_states() const { return kind == Kind::Sgd ? 0 : kind == Kind::Adagrad ? 1 : 2; }
};

// What one update of a stretch has in common.
struct RuleStep {
  ServerRule rule;
  double lr = 0;
  double grad_scale = 1;
  double weight_decay = 0;
  int64_t step = 1;  // of these elements, from 1: AdamW's t
};

// `count` elements; the first num_states() states are read and written.
template <class T>
struct RuleRange {
  T* weight;
  const T* grad;
  T* first;
  T* second;
  int64_t count;
};

template <class T>
AdamWFactors<T> adamw_factors(const RuleStep& step) {
  const ServerRule& rule = step.rule;
  const auto t = static_cast<double>(step.step);
  return {
      .keep = static_cast<T>(1 - step.lr * step.weight_decay),
      .grad_scale = static_cast<T>(step.grad_scale),
      .beta1 = static_cast<T>(rule.beta1),
      .beta2 = static_cast<T>(rule.beta2),
      .fresh1 = static_cast<T>(1 - rule.beta1),
      .fresh2 = static_cast<T>(1 - rule.beta2),
      .step_size = static_cast<T>(step.lr / (1 - std::pow(rule.beta1, t))),
      .root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(rule.beta2, t))),
      .eps = static_cast<T>(rule.eps),
  };
}

template <class T>
void apply_rule(const RuleStep& step, const RuleRange<T>& range) {
  const T scale = static_cast<T>(step.grad_scale), lr = static_cast<T>(step.lr), eps = static_cast<T>(step.rule.eps);
  T* __restrict__ weight = range.weight;
  const T* __restrict__ grad = range.grad;
  T* __restrict__ first = range.first;
  T* __restrict__ second = range.second;
  switch (step.rule.kind) {
    case ServerRule::Kind::Sgd:
      for (int64_t i = 0; i < range.count; ++i) weight[i] -= lr * (grad[i] * scale);
      return;
    case ServerRule::Kind::Adagrad:
      for (int64_t i = 0; i < range.count; ++i) {
        const T g = grad[i] * scale;
        first[i] += g * g;
        weight[i] -= lr * g / (std::sqrt(first[i]) + eps);
      }
      return;
    case ServerRule::Kind::AdamW:
      const AdamWFactors<T> factors = adamw_factors<T>(step);
      for (int64_t i = 0; i < range.count; ++i) adamw_update(weight[i], grad[i], first[i], second[i], factors);
  }
}

}  // namespace braid
