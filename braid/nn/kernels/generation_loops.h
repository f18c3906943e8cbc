// The loops of generation_rows.h, for any processor.
#pragma once

#include <algorithm>
#include <limits>

#include "braid/nn/kernels/generation_rows.h"
#include "braid/nn/kernels/vector_math.h"

namespace braid::kernels {

namespace BRAID_ROWS {

// Computes a tile of kRows x kOutputs results. Each sum is one chain over the inputs in their order, in any tile.
template <class T, int kRows, int kOutputs>
BRAID_INLINE void product_tile(const RowProduct<T>& a, int64_t row, int64_t output) {
  using L = Lanes<MathOf<T>>;
  L sums[kRows][kOutputs];
  for (auto& of_row : sums) {
    for (L& one : of_row) one = L(0);
  }
  const T *x = a.x + row * a.inputs, *weight = a.weight + output * a.inputs;
  const auto add = [&](int64_t i, auto extent) __attribute__((always_inline)) {
    L inputs[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) inputs[r] = load(x + r * a.inputs + i, extent);
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const T* weights = weight + o * a.inputs + i;
      __builtin_prefetch(weights +
                         kOutputs * a.inputs);  // next tile; rows are too short for the processor's own prefetching
      const L w = load(weights, extent);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][o] = fma(inputs[r], w, sums[r][o]);
    }
  };
  constexpr int64_t kStep = kLanesOf<T>;
  int64_t i = 0;
  for (; i + kStep <= a.inputs; i += kStep) add(i, Whole{});
  if (i < a.inputs) add(i, Head{a.inputs - i});
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      const MathOf<T> bias = a.bias ? static_cast<MathOf<T>>(a.bias[output + o]) : MathOf<T>(0);
      a.y[(row + r) * a.outputs + output + o] = static_cast<T>(sum(sums[r][o]) + bias);
    }
  }
}

template <class T, int kOutputs>
BRAID_INLINE void product_columns(const RowProduct<T>& a, int64_t output) {
  int64_t row = 0;
  for (; row + 4 <= a.rows; row += 4) product_tile<T, 4, kOutputs>(a, row, output);
  if (row + 2 <= a.rows) product_tile<T, 2, kOutputs>(a, row, output), row += 2;
  if (row < a.rows) product_tile<T, 1, kOutputs>(a, row, output);
}

// Reads each row of the weight from memory once: all rows of x use it before the next one is read.
template <class T>
void row_product(const RowProduct<T>& a, RowRange outputs) {
  constexpr int kOutputs = 4;
  int64_t output = outputs.begin;
  for (; output + kOutputs <= outputs.end; output += kOutputs) product_columns<T, kOutputs>(a, output);
  for (; output < outputs.end; ++output) product_columns<T, 1>(a, output);
}

// Computes the scores of `kBlocks` blocks, starting at position `first`.
template <class T, int kBlocks>
BRAID_INLINE void score_blocks(const CachedHead<T>& a, int64_t first) {
  using M = MathOf<T>;
  using L = Lanes<M>;
  constexpr int kPerBlock = kKeyBlock / L::kCount;
  L sums[kBlocks * kPerBlock];
  for (L& one : sums) one = L(0);
  const T* keys = a.keys + first * a.width;
  for (int64_t f = 0; f < a.width; ++f) {
    const L q(static_cast<M>(a.q[f]));
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 2
      for (int k = 0; k < kPerBlock; ++k) {
        L& one = sums[b * kPerBlock + k];
        one = fma(q, load(keys + (b * a.width + f) * kKeyBlock + k * L::kCount), one);
      }
    }
  }
  const L scale(a.scale);
  for (int j = 0; j < kBlocks * kPerBlock; ++j) store(a.scores + first + j * L::kCount, sums[j] * scale);
}

// Replaces the scores by their exponentials, zero outside of `places`, and returns their sum.
template <class M>
BRAID_INLINE M exponentials(M* scores, RowRange blocks, RowRange places) {
  using L = Lanes<M>;
  constexpr M kLowest = -std::numeric_limits<M>::infinity();
  std::fill(scores + blocks.begin, scores + places.begin, kLowest);
  std::fill(scores + places.end, scores + blocks.end, kLowest);
  M most = kLowest;
  for (int64_t p = places.begin; p < places.end; ++p) most = scores[p] > most ? scores[p] : most;
  const L largest(most);
  L total(0);
  for (int64_t p = blocks.begin; p < blocks.end; p += L::kCount) {
    const L e = exp_of_nonpositive(load(scores + p) - largest);
    store(scores + p, e);
    total = total + e;
  }
  return sum(total);
}

// Computes kCount Lanes of output features (at most kChains), starting at `feature`.
template <class T, int kCount>
BRAID_INLINE void weighted_values(const CachedHead<T>& a, int64_t feature, MathOf<T> weight) {
  using L = Lanes<MathOf<T>>;
  L sums[kCount];
  for (L& one : sums) one = L(0);
  const int64_t row = value_width(a.width);
  const T* values = a.values + feature;
  for (int64_t p = a.begin; p < a.end; ++p) {
    const L share(a.scores[p]);
#pragma GCC unroll 4
    for (int j = 0; j < kCount; ++j) sums[j] = fma(share, load(values + p * row + j * L::kCount), sums[j]);
  }
  for (int j = 0; j < kCount; ++j) {
    const int64_t at = feature + j * L::kCount;
    if (at + L::kCount <= a.width) {
      store(a.y + at, sums[j] * L(weight));
    } else {
      store(a.y + at, sums[j] * L(weight), Head{a.width - at});
    }
  }
}

template <class M>
BRAID_INLINE void cap_scores(M* scores, RowRange blocks, M cap) {
  using L = Lanes<M>;
  for (int64_t p = blocks.begin; p < blocks.end; p += L::kCount) {
    store(scores + p, L(cap) * tanh(load(scores + p) / L(cap)));
  }
}

template <class T>
void attend(const CachedHead<T>& a) {
  using M = MathOf<T>;
  const RowRange blocks{a.begin / kKeyBlock * kKeyBlock, (a.end + kKeyBlock - 1) / kKeyBlock * kKeyBlock};
  int64_t p = blocks.begin;
  for (; p + 4 * kKeyBlock <= blocks.end; p += 4 * kKeyBlock) score_blocks<T, 4>(a, p);
  for (; p < blocks.end; p += kKeyBlock) score_blocks<T, 1>(a, p);
  if (a.cap > 0) cap_scores(a.scores, blocks, a.cap);
  const M weight = 1 / exponentials(a.scores, blocks, {a.begin, a.end});
  constexpr int64_t kStep = kLanesOf<T>;
  int64_t feature = 0;
  for (; feature + 3 * kStep < a.width; feature += 4 * kStep) weighted_values<T, 4>(a, feature, weight);
  for (; feature < a.width; feature += kStep) weighted_values<T, 1>(a, feature, weight);
}

template <class T>
constexpr GenerationKernels<T> kGeneration{row_product<T>, attend<T>};

}  // namespace BRAID_ROWS

}  // namespace braid::kernels
