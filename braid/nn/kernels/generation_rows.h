// The inner loops of generation over raw memory, one set for each kind of processor: products of few rows, and
// attention of one token over what is cached.
//
// As in rows.h: T is what memory holds, MathOf<T> what is computed with, results are rounded to T once, and all sets
// give the same bits but for double. A row's result depends on that row alone: neither on how many rows there are nor
// on who computes which.
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

// Keys lie in blocks of kKeyBlock places: feature f of place p is at (p / kKeyBlock * width + f) * kKeyBlock
// + p % kKeyBlock. So the scores of a block come out side by side.
constexpr int64_t kKeyBlock = 16;
// Rows of values begin at multiples of this many elements: value_width(width) from row to row.
constexpr int64_t kValueStep = 16;
constexpr int64_t value_width(int64_t width) { return (width + kValueStep - 1) / kValueStep * kValueStep; }

// y = softmax(scale q . keys) values over places begin .. end - 1, end > begin. What lies at other places, whatever it
// is, counts for nothing.
template <class T>
struct CachedHead {
  const T *q, *keys, *values;
  T* y;
  int64_t width;  // features of q and y
  int64_t begin, end;
  MathOf<T> scale;
  MathOf<T>* scores;  // room for `end`, rounded up to a whole block
};

template <class T>
struct GenerationKernels {
  void (*product)(const RowProduct<T>&, RowRange outputs);
  void (*attend)(const CachedHead<T>&);
};

}  // namespace braid::kernels
