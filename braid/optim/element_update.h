// The arithmetic of optimizers that update element by element, on raw memory, the same on CPU and CUDA. Of each rule
// there is a struct with what elements have in common, and a function that updates one.
//
// Zeros stay zeros where the gradient is zero, so padding may be part of a range (eps > 0).
#pragma once

#include <cmath>
#include <cstdint>
#include <variant>

#include "braid/base/host_device.h"

namespace braid::optim {

// Gradient descent. The decay is coupled, a pull that adds to the gradient, as in torch.optim.SGD.
template <class T>
struct DescentFactors {
  using Number = T;
  static constexpr int kStates = 0;
  T grad_scale;  // of the norm clipping
  T decay;
  T step_size;
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, const DescentFactors<T>& f) {
  weight -= f.step_size * (grad * f.grad_scale + f.decay * weight);
}

// The same with momentum, without dampening or Nesterov's step, as in torch.optim.SGD.
template <class T>
struct MomentumFactors {
  using Number = T;
  static constexpr int kStates = 1;
  T grad_scale, decay, momentum, step_size;
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
  T grad_scale, decay, step_size, eps;
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
  T keep;  // 1 - lr * decay
  T grad_scale;
  T beta1, fresh1;  // of the direction: fresh is 1 - beta
  T beta2, fresh2;  // of the momentum
  T step_size;
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
  T keep;             // 1 - lr * decay
  T grad_scale;       // of the norm clipping
  T beta1, beta2;     // of the moments
  T fresh1, fresh2;   // 1 - beta1, 1 - beta2
  T step_size;        // lr / (1 - beta1^t)
  T root_correction;  // 1 / sqrt(1 - beta2^t)
  T eps;
};

template <class T>
BRAID_HOST_DEVICE inline void element_update(T& weight, T grad, T& first, T& second, const AdamWFactors<T>& f) {
  grad *= f.grad_scale;
  first = f.beta1 * first + f.fresh1 * grad;
  second = f.beta2 * second + f.fresh2 * (grad * grad);
  const T root = std::sqrt(second) * f.root_correction + f.eps;
  weight = f.keep * weight - f.step_size * first / root;
}

// All of them.
template <class T>
using AnyFactors =
    std::variant<DescentFactors<T>, MomentumFactors<T>, AdagradFactors<T>, LionFactors<T>, AdamWFactors<T>>;

// `count` elements each; none overlaps another. All but `grad` are read and written; a rule with fewer states than two
// leaves the others null.
template <class T>
struct ElementRange {
  T* weight;
  const T* grad;
  T* first;
  T* second;
  int64_t count;
};

}  // namespace braid::optim
