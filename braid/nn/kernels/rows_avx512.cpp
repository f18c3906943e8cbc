// The row kernels on 64-byte registers. Standard headers come before the pragma: what they define must not be compiled
// for a processor that may not be there.
#if defined(__x86_64__)
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "braid/nn/kernels/rows.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define BRAID_ROWS avx512
#define BRAID_ROWS_REGISTER 64
#include "braid/nn/kernels/row_set.h"

namespace braid::kernels {

template <class T>
const RowKernels<T>& avx512_rows() {
  return avx512::kRows<T>;
}

template const RowKernels<float>& avx512_rows();
template const RowKernels<double>& avx512_rows();
template const RowKernels<c10::BFloat16>& avx512_rows();
template const RowKernels<c10::Half>& avx512_rows();

}  // namespace braid::kernels
#endif
