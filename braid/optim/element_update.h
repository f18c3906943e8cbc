// The optimizers that update element by element, on raw memory, with the same code for CPU and CUDA. Each consists of a
// struct and a function that updates one element. The struct holds the factors that all elements share, and the names
// and signs of the states; of() computes the factors from a rule and a step (element_rule.h). Factors are computed in
// double and rounded once.
//
// If the gradient is zero, an element and states that are zero stay zero (eps > 0), so padding may be part of a range.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <variant>

#include "braid/base/host_device.h"

namespace braid::optim {

// The values that a state can have.
enum class StateSign { Any, NonNegative };

// Gradient descent. The decay is coupled: it is added to the gradient, as in torch.optim.SGD.
template <class T>
struct DescentFactors {
  using Number = T;
  static constexpr int kStates = 0;
  static constexpr std::array<const char*, kStates> kStateNames = {};
  static constexpr std::array<StateSign, kStates> kStateSigns = {};
  T grad_scale;  // factor of the norm clipping
  T decay;
  T step_size;

  template <class Rule, class Step>
  static DescentFactors of(const Rule& rule, const Step& step) {
    return {T(step.grad_scale), T(step.weight_decay), T(step.lr)};
  }
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, const DescentFactors<T>& f) {
  weight -= f.step_size * (grad * f.grad_scale + f.decay * weight);
}

// Gradient descent with momentum, without dampening and without Nesterov's step, as in torch.optim.SGD.
template <class T>
struct MomentumFactors {
  using Number = T;
  static constexpr int kStates = 1;
  static constexpr std::array<const char*, kStates> kStateNames = {"sgd.momentum"};
  static constexpr std::array<StateSign, kStates> kStateSigns = {StateSign::Any};
  T grad_scale, decay, momentum, step_size;

  template <class Rule, class Step>
  static MomentumFactors of(const Rule& rule, const Step& step) {
    return {T(step.grad_scale), T(step.weight_decay), T(rule.momentum), T(step.lr)};
  }
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, T& momentum, const MomentumFactors<T>& f) {
  momentum = f.momentum * momentum + (grad * f.grad_scale + f.decay * weight);
  weight -= f.step_size * momentum;
}

// Adagrad. The decay is coupled, as in torch.optim.Adagrad.
// Source: Duchi et al. (2011); Dean et al., "Large Scale Distributed Deep Networks" (NIPS 2012), section 4.1.
template <class T>
struct AdagradFactors {
  using Number = T;
  static constexpr int kStates = 1;
  static constexpr std::array<const char*, kStates> kStateNames = {"adagrad.squares"};
  static constexpr std::array<StateSign, kStates> kStateSigns = {StateSign::NonNegative};
  T grad_scale, decay, step_size, eps;

  template <class Rule, class Step>
  static AdagradFactors of(const Rule& rule, const Step& step) {
    return {T(step.grad_scale), T(step.weight_decay), T(step.lr), T(rule.eps)};
  }
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, T& squares, const AdagradFactors<T>& f) {
  const T pull = grad * f.grad_scale + f.decay * weight;
  squares += pull * pull;
  weight -= f.step_size * pull / (std::sqrt(squares) + f.eps);
}

// Lion, with decoupled decay.
// Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023), algorithm 2.
template <class T>
struct LionFactors {
  using Number = T;
  static constexpr int kStates = 1;
  static constexpr std::array<const char*, kStates> kStateNames = {"lion.momentum"};
  static constexpr std::array<StateSign, kStates> kStateSigns = {StateSign::Any};
  T keep;  // 1 - lr * decay
  T grad_scale;
  T beta1, fresh1;  // factors of the direction; fresh1 is 1 - beta1
  T beta2, fresh2;  // factors of the momentum; fresh2 is 1 - beta2
  T step_size;

  template <class Rule, class Step>
  static LionFactors of(const Rule& rule, const Step& step) {
    return {.keep = T(1 - step.lr * step.weight_decay),
            .grad_scale = T(step.grad_scale),
            .beta1 = T(rule.beta1),
            .fresh1 = T(1 - rule.beta1),
            .beta2 = T(rule.beta2),
            .fresh2 = T(1 - rule.beta2),
            .step_size = T(step.lr)};
  }
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, T& momentum, const LionFactors<T>& f) {
  grad *= f.grad_scale;
  const T direction = f.beta1 * momentum + f.fresh1 * grad;
  momentum = f.beta2 * momentum + f.fresh2 * grad;
  const T sign = static_cast<T>(direction > 0) - static_cast<T>(direction < 0);
  weight = f.keep * weight - f.step_size * sign;
}

// AdamW. Source: Loshchilov & Hutter, "Decoupled Weight Decay Regularization" (2019), algorithm 2.
template <class T>
struct AdamWFactors {
  using Number = T;
  static constexpr int kStates = 2;
  static constexpr std::array<const char*, kStates> kStateNames = {"adamw.first_moment", "adamw.second_moment"};
  static constexpr std::array<StateSign, kStates> kStateSigns = {StateSign::Any, StateSign::NonNegative};
  T keep;             // 1 - lr * decay
  T grad_scale;       // factor of the norm clipping
  T beta1, beta2;     // factors of the moments
  T fresh1, fresh2;   // 1 - beta1, 1 - beta2
  T step_size;        // lr / (1 - beta1^t)
  T root_correction;  // 1 / sqrt(1 - beta2^t)
  T eps;

  template <class Rule, class Step>
  static AdamWFactors of(const Rule& rule, const Step& step) {
    const auto t = static_cast<double>(step.step);
    return {.keep = T(1 - step.lr * step.weight_decay),
            .grad_scale = T(step.grad_scale),
            .beta1 = T(rule.beta1),
            .beta2 = T(rule.beta2),
            .fresh1 = T(1 - rule.beta1),
            .fresh2 = T(1 - rule.beta2),
            .step_size = T(step.lr / (1 - std::pow(rule.beta1, t))),
            .root_correction = T(1 / std::sqrt(1 - std::pow(rule.beta2, t))),
            .eps = T(rule.eps)};
  }
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, T& first, T& second, const AdamWFactors<T>& f) {
  grad *= f.grad_scale;
  first = f.beta1 * first + f.fresh1 * grad;
  second = f.beta2 * second + f.fresh2 * (grad * grad);
  const T root = std::sqrt(second) * f.root_correction + f.eps;
  weight = f.keep * weight - f.step_size * first / root;
}

// The factors of any of these optimizers.
template <class T>
using AnyFactors =
    std::variant<DescentFactors<T>, MomentumFactors<T>, AdagradFactors<T>, LionFactors<T>, AdamWFactors<T>>;

// Ranges of `count` elements each, which do not overlap. All but `grad` are read and written. `first` and `second` are
// states; those that a rule does not have are null.
template <class T>
struct ElementRange {
  T* weight;
  const T* grad;
  T* first;
  T* second;
  int64_t count;
};

}  // namespace braid::optim
