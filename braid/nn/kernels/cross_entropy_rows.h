// The two passes of a cross-entropy over rows of logits in raw memory, with one set of kernels for each kind of
// processor.
//
// As in rows.h: memory holds T, and the arithmetic is MathOf<T>, with results rounded to T once. A row's result depends
// on that row alone. All sets give the same bits, except for double.
#pragma once

#include <type_traits>

#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

// Rows of `width` elements, of which the first `real` count and the others are padding. column: one per row, the column
// of its target; negative if another rank has that column. With a cap, elements x count as cap tanh(x / cap).
template <class T>
struct LogitRows {
  T* x;
  int64_t width, real;
  const int64_t* column;
  MathOf<std::remove_const_t<T>> cap = 0;
};

// Computes, for each row, max = the largest x (-inf without real columns), sum = the sum of exp(x - max), target =
// x[column] or 0.
template <class T>
struct SoftmaxSumRows {
  LogitRows<const T> logits;
  MathOf<T>*max, *sum, *target;
};

// Computes x = scale exp(x - max), less `step` at the target, times the slope of the cap; 0 in the padding.
template <class T>
struct SoftmaxGradientRows {
  LogitRows<T> logits;
  const MathOf<T>*max, *scale;  // one per row; no x of the row exceeds max by more than rounding
  MathOf<T> step;
};

template <class T>
struct CrossEntropyKernels {
  void (*sums)(const SoftmaxSumRows<T>&, RowRange);
  void (*gradient)(const SoftmaxGradientRows<T>&, RowRange);
};

}  // namespace braid::kernels
