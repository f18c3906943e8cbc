// The passes over tiles of capped attention scores in raw memory, with one set for each kind of processor, and the
// functions of the cap.
//
// A capped score is u = cap tanh(x), where x is the score divided by the cap. It lies within +-cap, so a softmax needs
// no maximum: exp(u) neither overflows nor vanishes for caps up to kMostCap. M is float or double.
#pragma once

#include "braid/nn/kernels/rows.h"

namespace braid::kernels {

inline constexpr double kMostCap = 64;

// A tile of scores, row by row. Row i has `columns` elements, of which its query sees seen[i].begin .. seen[i].end - 1.
template <class M>
struct ScoreTile {
  M* x;
  int64_t rows, columns;
  const RowRange* seen;
  M cap;
};

// Computes dx = exp(u - norm) (dp - delta) (1 - tanh(x)^2) into `dp`, and overwrites the scores with exp(u - norm).
// Both are 0 where a query does not see a key.
template <class M>
struct ScoreGradient {
  M* dp;                  // a tile of the same size
  const M *norm, *delta;  // for each row: the logarithm of the sum of exp(u); dy . y
};

template <class M>
struct CappedScoreKernels {
  // Overwrites x with exp(u), 0 where a query does not see a key, and adds each row's sum to sums[i].
  void (*exponentials)(const ScoreTile<M>&, M* sums);
  void (*gradient)(const ScoreTile<M>&, const ScoreGradient<M>&);
};

// Copies of elements in the type of the arithmetic, and back: to = factor x from, rounded once.
template <class T>
struct ElementCopyKernels {
  void (*widen)(const T* from, int64_t count, MathOf<T>* to);
  void (*narrow)(const MathOf<T>* from, int64_t count, MathOf<T> factor, T* to);
};

}  // namespace braid::kernels
