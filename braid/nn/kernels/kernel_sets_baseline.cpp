// The sets of kernels for the processors that the whole build targets.
#define BRAID_PROCESSOR Processor::Baseline
#include "braid/nn/kernels/baseline_target.h"
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
