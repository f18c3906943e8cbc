// The sets for the processors that the whole build is made for.
#define BRAID_PROCESSOR Processor::Baseline
#define BRAID_ROWS baseline
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define BRAID_ROWS_REGISTER 32
#else
#define BRAID_ROWS_REGISTER 16
#endif
#include "braid/nn/kernels/kernel_sets.h"

bool braid::kernels::can_run(Processor processor) {
#if defined(__x86_64__)
  if (processor == Processor::Avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return processor == Processor::Baseline;
}
