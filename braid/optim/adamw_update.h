// The arithmetic of AdamW on one element and on one range of raw memory, the same on CPU and CUDA.
// It knows no tensors, parameters or schedule: only numbers.
#pragma once

#include <cmath>
#include <cstdint>

#include "braid/base/host_device.h"

namespace braid {

// What a step has in common for all elements of a range, formed in double and rounded once.
template <class T>
struct AdamWFactors {
  T keep;             // 1 - lr * decay
  T grad_scale;       // of the norm clipping
  T beta1, beta2;     // of the moments
  T fresh1, fresh2;   // 1 - beta1, 1 - beta2
  T step_size;        // lr / (1 - beta1^t)
  T root_correction;  // 1 / sqrt(1 - beta2^t)
  T eps;
};

// Ranges of `count` elements; the four do not overlap. `weight`, `first` and `second` are read and written.
template <class T>
struct AdamWRange {
  T* weight;
  const T* grad;
  T* first;   // moment
  T* second;  // moment
  int64_t count;
  AdamWFactors<T> factors;
};

// Zeros stay zeros, so padding may be part of a range (eps > 0).
template <class T>
BRAID_HOST_DEVICE inline void adamw_update(T& weight, T grad, T& first, T& second, const AdamWFactors<T>& f) {
  grad *= f.grad_scale;
  first = f.beta1 * first + f.fresh1 * grad;
  second = f.beta2 * second + f.fresh2 * (grad * grad);
  const T root = std::sqrt(second) * f.root_correction + f.eps;
  weight = f.keep * weight - f.step_size * first / root;
}

}  // namespace braid
