// The passes of a cross-entropy on 64-byte registers. Standard headers come before the pragma: what they define must
// not be compiled for a processor that may not be there.
#if defined(__x86_64__)
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "braid/nn/kernels/cross_entropy_rows.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define BRAID_ROWS avx512
#define BRAID_ROWS_REGISTER 64
#include "braid/nn/kernels/cross_entropy_loops.h"

namespace braid::kernels {

template <class T>
const CrossEntropyKernels<T>& avx512_cross_entropy() {
  return avx512::kCrossEntropy<T>;
}

template const CrossEntropyKernels<float>& avx512_cross_entropy();
template const CrossEntropyKernels<double>& avx512_cross_entropy();
template const CrossEntropyKernels<c10::BFloat16>& avx512_cross_entropy();
template const CrossEntropyKernels<c10::Half>& avx512_cross_entropy();

}  // namespace braid::kernels
#endif
