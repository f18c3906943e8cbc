// One set of row kernels: all that a source compiled for one processor defines.
#pragma once

#include "braid/nn/kernels/activation_rows.h"
#include "braid/nn/kernels/norm_rows.h"

namespace braid::kernels {

namespace BRAID_ROWS {

template <class M>
void sum_parts(const SumParts<M>& a, RowRange columns) {
  for_lanes<M>(
      columns.end - columns.begin, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
        const int64_t at = columns.begin + j;
        Lanes<M> total = load(a.parts + at, extent);
        for (int64_t i = 1; i < a.num_parts; ++i) total = total + load(a.parts + i * a.stride + at, extent);
        store(a.to + at, total, extent);
      });
}

template <class T>
constexpr RowKernels<T> kRows{norm_forward<T>,   norm_backward<T>,   gelu_forward<T>, gelu_backward<T>,
                              swiglu_forward<T>, swiglu_backward<T>, rotary<T>,       sum_parts<MathOf<T>>};

}  // namespace BRAID_ROWS

// The set of rows_avx512.cpp. What it returns runs only where can_run(Processor::Avx512).
template <class T>
const RowKernels<T>& avx512_rows();

}  // namespace braid::kernels
