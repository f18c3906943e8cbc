// The loops for bias + GELU, SwiGLU, GeGLU and rotary embeddings over rows, for any processor.
#pragma once

#include "braid/nn/kernels/rows.h"
#include "braid/nn/kernels/vector_erf.h"

namespace braid::kernels::BRAID_ROWS {

// gelu(x) = x / 2 (1 + tanh u) = x sigmoid(2 u) with 2 u = x (kLinear + kCubic x^2). The second form has no
// cancellation for x far below zero.
template <class M>
struct Gelu {
  using L = Lanes<M>;
  static constexpr M kLinear = 1.5957691216057307118;  // 2 sqrt(2 / pi)
  static constexpr M kCubic = 0.044715 * 1.5957691216057307118;

  static BRAID_INLINE L value(const L& x) { return x * sigmoid(x * fma(L(kCubic), x * x, L(kLinear))).value; }
  static BRAID_INLINE L derivative(const L& x) {
    const L square = x * x;
    const Sigmoid<M> s = sigmoid(x * fma(L(kCubic), square, L(kLinear)));
    return fma(x * s.value * s.complement, fma(L(3 * kCubic), square, L(kLinear)), s.value);
  }
};

// gelu(x) = x N(x), with the normal distribution's integral N.
template <class M>
struct GeluErf {
  static BRAID_INLINE Lanes<M> value(const Lanes<M>& x) { return x * normal_of(x).integral; }
  static BRAID_INLINE Lanes<M> derivative(const Lanes<M>& x) {
    const Normal<M> normal = normal_of(x);
    return fma(x, normal.density, normal.integral);
  }
};

template <class T, template <class> class Form = Gelu>
void gelu_forward(const GeluForwardRows<T>& a, RowRange rows) {
  const T* bias = a.bias;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* h = a.h + i * a.width;
    T* y = a.y + i * a.width;
    for_lanes<T>(
        a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          store(y + j, Form<MathOf<T>>::value(load(h + j, extent) + load(bias + j, extent)), extent);
        });
  }
}

template <class T, template <class> class Form = Gelu>
void gelu_backward(const GeluBackwardRows<T>& a, RowRange rows, MathOf<T>* sums) {
  const T* bias = a.bias;
  std::memset(sums, 0, a.width * sizeof(MathOf<T>));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T *h = a.h + i * a.width, *dy = a.dy + i * a.width;
    T* dh = a.dh + i * a.width;
    for_lanes<T>(
        a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          const auto slope = Form<MathOf<T>>::derivative(load(h + j, extent) + load(bias + j, extent));
          const auto value = load(dy + j, extent) * slope;
          store(dh + j, value, extent);
          store(sums + j, load(sums + j, extent) + value, extent);
        });
  }
}

// The forms of a gate: an activation, and with its derivative.
template <class M>
struct ValueAndSlope {
  Lanes<M> value, slope;
};

// silu(g) = g s, silu'(g) = s + g s (1 - s), with s = sigmoid(g).
template <class M>
struct SiluGate {
  static BRAID_INLINE Lanes<M> value(const Lanes<M>& g) { return g * sigmoid(g).value; }
  static BRAID_INLINE ValueAndSlope<M> with_slope(const Lanes<M>& g) {
    const auto s = sigmoid(g);
    const auto silu = g * s.value;
    return {silu, fma(silu, s.complement, s.value)};
  }
};

template <class M>
struct GeluGate {
  static BRAID_INLINE Lanes<M> value(const Lanes<M>& g) { return Gelu<M>::value(g); }
  static BRAID_INLINE ValueAndSlope<M> with_slope(const Lanes<M>& g) {
    return {Gelu<M>::value(g), Gelu<M>::derivative(g)};
  }
};

template <class T, template <class> class Gate>
void gated_forward(const GateForwardRows<T>& a, RowRange rows) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T *gate = a.gate_up + i * 2 * a.width, *up = gate + a.width;
    T* y = a.y + i * a.width;
    for_lanes<T>(
        a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          store(y + j, Gate<MathOf<T>>::value(load(gate + j, extent)) * load(up + j, extent), extent);
        });
  }
}

template <class T, template <class> class Gate>
void gated_backward(const GateBackwardRows<T>& a, RowRange rows) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T *gate = a.gate_up + i * 2 * a.width, *up = gate + a.width, *dy = a.dy + i * a.width;
    T *dgate = a.dgate_up + i * 2 * a.width, *dup = dgate + a.width;
    for_lanes<T>(
        a.width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
          const auto g = load(gate + j, extent), d = load(dy + j, extent), u = load(up + j, extent);
          const auto gated = Gate<MathOf<T>>::with_slope(g);
          store(dgate + j, d * u * gated.slope, extent);
          store(dup + j, d * gated.value, extent);
        });
  }
}

template <class T>
void rotary(const RotaryRows<T>& a, RowRange rows) {
  using L = Lanes<MathOf<T>>;
  const L direction(a.direction);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const MathOf<T>*cos = a.cos + i % a.time * a.half, *sin = a.sin + i % a.time * a.half;
    for (int64_t head = 0; head < a.heads; ++head) {
      T *first = a.x + i * a.stride + head * 2 * a.half, *second = first + a.half;
      for_lanes<T>(
          a.half, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            const L p = load(first + j, extent), q = load(second + j, extent);
            const L c = load(cos + j, extent), s = load(sin + j, extent) * direction;
            store(first + j, p * c - q * s, extent);
            store(second + j, fma(p, s, q * c), extent);
          });
    }
  }
}

}  // namespace braid::kernels::BRAID_ROWS
