// The loops of generation for the processors that the whole build is made for, and the choice between the sets.
#define BRAID_ROWS baseline
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define BRAID_ROWS_REGISTER 32
#else
#define BRAID_ROWS_REGISTER 16
#endif
#include "braid/nn/kernels/generation_loops.h"

namespace braid::kernels {

template <class T>
const GenerationKernels<T>& generation_kernels(Processor processor) {
#if defined(__x86_64__)
  if (processor == Processor::Avx512) return avx512_generation<T>();
#endif
  return baseline::kGeneration<T>;
}

template <class T>
const GenerationKernels<T>& generation_kernels() {
  static const GenerationKernels<T>& best =
      generation_kernels<T>(can_run(Processor::Avx512) ? Processor::Avx512 : Processor::Baseline);
  return best;
}

#define BRAID_INSTANTIATE(T)                                             \
  template const GenerationKernels<T>& generation_kernels<T>(Processor); \
  template const GenerationKernels<T>& generation_kernels<T>();
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(c10::BFloat16)
BRAID_INSTANTIATE(c10::Half)

}  // namespace braid::kernels
