// The inner loops of the fused kernels, over ranges of rows of raw memory, with one set for each kind of processor.
//
// Memory holds T (float, double, c10::BFloat16, c10::Half). The arithmetic is MathOf<T>, with results rounded to T
// once. Rows have `width` elements and are contiguous, one row after another. Comments name pointers that may be
// null and ranges that may overlap. A row's result depends on that row alone. All sets give the same bits for
// float, c10::BFloat16 and c10::Half; for double also, except where std::exp is used.
#pragma once

#include <cstdint>

#include "braid/nn/kernels/math_type.h"

namespace braid::kernels {

enum class NormKind { Layer, Rms };

struct RowRange {
  int64_t begin, end;
};

// Computes sum = residual + branch + branch_bias; y = norm(sum). Without `branch`, `residual` itself is normalised and
// `sum` is not written. Without `y`, only `sum` is written.
template <class T>
struct NormForwardRows {
  NormKind kind;
  int64_t width;
  MathOf<T> eps;
  const T *residual, *branch, *branch_bias;  // branch and branch_bias may be null
  T* sum;                                    // null without branch
  const T *weight, *bias;                    // bias is null for Rms
  T* y;                                      // may be null
  MathOf<T>*mean, *rstd;                     // one per row; mean is null for Rms
  MathOf<T> offset = -MathOf<T>(0);          // added to each weight; -0 changes none, not even -0 itself
};

// Computes dx = norm'(dy) + dsum. Writes the two sums over the range's rows, dweight and dbias, `width` each, to
// `sums`.
template <class T>
struct NormBackwardRows {
  NormKind kind;
  int64_t width;
  const T *dsum, *dy, *x;  // dsum may be null; x is the normalised input
  const T* weight;
  const MathOf<T>*mean, *rstd;
  T* dx;
  MathOf<T> offset = -MathOf<T>(0);  // as in NormForwardRows
};

// Computes y = gelu(h + bias).
template <class T>
struct GeluForwardRows {
  int64_t width;
  const T *h, *bias;
  T* y;
};

// Computes dh = dy gelu'(h + bias), and writes dbias, `width` sums, to `sums`. dh may be h or dy.
template <class T>
struct GeluBackwardRows {
  int64_t width;
  const T *dy, *h, *bias;
  T* dh;
};

// Computes y = silu(gate) * up, or gelu(gate) * up in the tanh form, where a row of `gate_up` is [gate | up] of 2
// `width` elements.
template <class T>
struct GateForwardRows {
  int64_t width;
  const T* gate_up;
  T* y;
};

// Computes the gradient of [gate | up]. dgate_up may be gate_up itself.
template <class T>
struct GateBackwardRows {
  int64_t width;
  const T *dy, *gate_up;
  T* dgate_up;
};

// Rotates each head of row i by the angles of position i mod time, in place. With a head's halves a and b: (a, b) -> (a
// cos - b sin, b cos + a sin).
template <class T>
struct RotaryRows {
  T* x;                       // the first head of row 0
  int64_t stride;             // distance between rows, in elements
  int64_t heads, half;        // number of contiguous heads to rotate, of 2 `half` elements each
  const MathOf<T>*cos, *sin;  // [time, half]
  int64_t time;
  MathOf<T> direction;  // 1: forward, -1: back
};

// Computes to[j] = the sum over i of parts[i * stride + j], in order.
template <class M>
struct SumParts {
  const M* parts;
  int64_t num_parts, stride;
  M* to;
};

template <class T>
struct RowKernels {
  using M = MathOf<T>;
  void (*norm_forward)(const NormForwardRows<T>&, RowRange);
  void (*norm_backward)(const NormBackwardRows<T>&, RowRange, M* sums);
  void (*gelu_forward)(const GeluForwardRows<T>&, RowRange);
  void (*gelu_backward)(const GeluBackwardRows<T>&, RowRange, M* sums);
  void (*gelu_erf_forward)(const GeluForwardRows<T>&, RowRange);
  void (*gelu_erf_backward)(const GeluBackwardRows<T>&, RowRange, M* sums);
  void (*swiglu_forward)(const GateForwardRows<T>&, RowRange);
  void (*swiglu_backward)(const GateBackwardRows<T>&, RowRange);
  void (*geglu_forward)(const GateForwardRows<T>&, RowRange);
  void (*geglu_backward)(const GateBackwardRows<T>&, RowRange);
  void (*rotary)(const RotaryRows<T>&, RowRange);
  void (*sum_parts)(const SumParts<M>&, RowRange columns);
};

}  // namespace braid::kernels
