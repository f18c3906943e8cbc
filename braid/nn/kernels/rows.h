// The inner loops of the fused kernels, over ranges of rows of raw memory, one set for each kind of processor.
//
// T is what memory holds (float, double, c10::BFloat16, c10::Half), MathOf<T> what is computed with; results are
// rounded to T once. Rows are `width` elements and lie one behind another. Pointers that may be null say so. Nothing
// overlaps but where said. A row's result depends on that row alone, and all sets give the same bits for float,
// c10::BFloat16 and c10::Half; for double too where std::exp does not take part.
#pragma once

#include <cstdint>

#include "braid/nn/kernels/math_type.h"

namespace braid::kernels {

enum class NormKind { Layer, Rms };

struct RowRange {
  int64_t begin, end;
};

// sum = residual + branch + branch_bias; y = norm(sum). Without `branch`, `residual` itself is normalised and `sum`
// is not written. Without `y`, only `sum` is written.
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
};

// dx = norm'(dy) + dsum. The two sums over the range's rows, `width` each, are written to sums: dweight, dbias.
template <class T>
struct NormBackwardRows {
  NormKind kind;
  int64_t width;
  const T *dsum, *dy, *x;  // dsum may be null; x is what was normalised
  const T* weight;
  const MathOf<T>*mean, *rstd;
  T* dx;
};

// y = gelu(h + bias), tanh form.
template <class T>
struct GeluForwardRows {
  int64_t width;
  const T *h, *bias;
  T* y;
};

// dh = dy gelu'(h + bias); sums: dbias, `width`. dh may be h or dy.
template <class T>
struct GeluBackwardRows {
  int64_t width;
  const T *dy, *h, *bias;
  T* dh;
};

// y = silu(gate) * up, where a row of `gate_up` is [gate | up] of 2 `width` elements.
template <class T>
struct SwigluForwardRows {
  int64_t width;
  const T* gate_up;
  T* y;
};

// d[gate | up]; may be gate_up itself.
template <class T>
struct SwigluBackwardRows {
  int64_t width;
  const T *dy, *gate_up;
  T* dgate_up;
};

// Turns each head of row i by the angles of position i mod time, in place: with a head's halves a and b,
// (a, b) -> (a cos - b sin, b cos + a sin).
template <class T>
struct RotaryRows {
  T* x;                       // the first head of row 0
  int64_t stride;             // from row to row, in elements
  int64_t heads, half;        // heads to turn, one behind another, of 2 `half` elements each
  const MathOf<T>*cos, *sin;  // [time, half]
  int64_t time;
  MathOf<T> direction;  // 1: forward, -1: back
};

// to[j] = the sum over i of parts[i * stride + j], in order.
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
  void (*swiglu_forward)(const SwigluForwardRows<T>&, RowRange);
  void (*swiglu_backward)(const SwigluBackwardRows<T>&, RowRange);
  void (*rotary)(const RotaryRows<T>&, RowRange);
  void (*sum_parts)(const SumParts<M>&, RowRange columns);
};

}  // namespace braid::kernels
