// Sets of inner loops over raw memory, each compiled once for each kind of processor: RowKernels (rows.h),
// CrossEntropyKernels (cross_entropy_rows.h), PlainTileKernels (tile_sums.h), GenerationKernels (generation_rows.h),
// CappedScoreKernels and ElementCopyKernels (capped_rows.h).
#pragma once

namespace braid::kernels {

enum class Processor {
  Baseline,  // the processor that the whole build is compiled for
  Avx512,
};

bool can_run(Processor processor);

// Defined in kernel_sets.h for float, double, c10::BFloat16 and c10::Half.
template <class Kernels, Processor processor>
const Kernels& compiled_kernels();

// Returns the set for `processor`. REQUIRES to call its functions: can_run(processor).
template <class Kernels>
const Kernels& kernels_for(Processor processor) {
#if defined(__x86_64__)
  if (processor == Processor::Avx512) return compiled_kernels<Kernels, Processor::Avx512>();
#endif
  return compiled_kernels<Kernels, Processor::Baseline>();
}

// Returns the set for the best processor that can run.
template <class Kernels>
const Kernels& best_kernels() {
  static const Kernels& best =
      kernels_for<Kernels>(can_run(Processor::Avx512) ? Processor::Avx512 : Processor::Baseline);
  return best;
}

}  // namespace braid::kernels
