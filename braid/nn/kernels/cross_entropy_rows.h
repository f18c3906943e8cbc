// The two passes of a cross-entropy over rows of logits in raw memory, one set for each kind of processor.
//
// As in rows.h: T is what memory holds, MathOf<T> what is computed with, results are rounded to T once, a row's result
// depends on that row alone, and all sets give the same bits but for double.
#pragma once

#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

// A row is `width` elements; only the first `real` count, the others are padding. column: one per row, where its target
// is, or negative when it is in another rank's columns.
template <class T>
struct LogitRows {
  T* x;
  int64_t width, real;
  const int64_t* column;
};

// Per row: max = the largest x (-inf without real columns), sum = sum of exp(x - max), target = x[column] or 0.
template <class T>
struct SoftmaxSumRows {
  LogitRows<const T> logits;
  MathOf<T>*max, *sum, *target;
};

// x = scale exp(x - max), less `step` where the target is; 0 in the padding.
template <class T>
struct SoftmaxGradientRows {
  LogitRows<T> logits;
  const MathOf<T>*max, *scale;  // one per row; no x of it is larger than max but by rounding
  MathOf<T> step;
};

template <class T>
struct CrossEntropyKernels {
  void (*sums)(const SoftmaxSumRows<T>&, RowRange);
  void (*gradient)(const SoftmaxGradientRows<T>&, RowRange);
};

}  // namespace braid::kernels
