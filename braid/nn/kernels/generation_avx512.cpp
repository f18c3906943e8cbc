// The loops of generation on 64-byte registers. Standard headers come before the pragma: what they define must not be
// compiled for a processor that may not be there.
#if defined(__x86_64__)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "braid/nn/kernels/generation_rows.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#define BRAID_ROWS avx512
#define BRAID_ROWS_REGISTER 64
#include "braid/nn/kernels/generation_loops.h"

namespace braid::kernels {

template <class T>
const GenerationKernels<T>& avx512_generation() {
  return avx512::kGeneration<T>;
}

template const GenerationKernels<float>& avx512_generation();
template const GenerationKernels<double>& avx512_generation();
template const GenerationKernels<c10::BFloat16>& avx512_generation();
template const GenerationKernels<c10::Half>& avx512_generation();

}  // namespace braid::kernels
#endif
