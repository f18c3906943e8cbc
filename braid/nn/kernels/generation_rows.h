// The inner loops of generation over raw memory, with one set for each kind of processor: products of few rows, and
// attention of one token over the cached ones.
//
// As in rows.h: memory holds T, and the arithmetic is MathOf<T>, with results rounded to T once. All sets give the same
// bits, except for double. A row's result depends on that row alone, not on the number of rows or on their division
// among threads.
#pragma once

#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

// y = x weight^T + bias.
template <class T>
struct RowProduct {
  int64_t rows, inputs, outputs;
  const T *x, *weight, *bias;  // [rows, inputs], [outputs, inputs], [outputs] or null
  T* y;                        // [rows, outputs]
};

// Keys are stored in blocks of kKeyBlock positions, so that the scores of a block are contiguous. Feature f of position
// p is at (p / kKeyBlock * width + f) * kKeyBlock + p % kKeyBlock.
constexpr int64_t kKeyBlock = 16;
// Rows of values begin at multiples of this many elements; value_width(width) is the distance between rows.
constexpr int64_t kValueStep = 16;
constexpr int64_t value_width(int64_t width) { return (width + kValueStep - 1) / kValueStep * kValueStep; }

// Computes y = softmax(s) values, with s = scale q . keys, or with a cap, cap tanh(scale q . keys / cap), over
// positions begin .. end - 1. Other positions may hold anything and have no effect. REQUIRES: end > begin.
template <class T>
struct CachedHead {
  const T *q, *keys, *values;
  T* y;
  int64_t width;  // number of features of q and y
  int64_t begin, end;
  MathOf<T> scale, cap;  // cap 0: none
  MathOf<T>* scores;     // memory for `end` scores, rounded up to a whole block
};

template <class T>
struct GenerationKernels {
  void (*product)(const RowProduct<T>&, RowRange outputs);
  void (*attend)(const CachedHead<T>&);
};

}  // namespace braid::kernels
