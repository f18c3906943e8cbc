// The row kernels for the processors that the whole build is made for, and the choice between the sets.
#define BRAID_ROWS baseline
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define BRAID_ROWS_REGISTER 32
#else
#define BRAID_ROWS_REGISTER 16
#endif
#include "braid/nn/kernels/row_set.h"

namespace braid::kernels {

bool can_run(Processor processor) {
#if defined(__x86_64__)
  if (processor == Processor::Avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return processor == Processor::Baseline;
}

template <class T>
const RowKernels<T>& row_kernels(Processor processor) {
#if defined(__x86_64__)
  if (processor == Processor::Avx512) return avx512_rows<T>();
#endif
  return baseline::kRows<T>;
}

template <class T>
const RowKernels<T>& row_kernels() {
  static const RowKernels<T>& best =
      row_kernels<T>(can_run(Processor::Avx512) ? Processor::Avx512 : Processor::Baseline);
  return best;
}

#define BRAID_INSTANTIATE(T)                               \
  template const RowKernels<T>& row_kernels<T>(Processor); \
  template const RowKernels<T>& row_kernels<T>();
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(c10::BFloat16)
BRAID_INSTANTIATE(c10::Half)

}  // namespace braid::kernels
