// All sets of kernels for one kind of processor. The source that is compiled for BRAID_PROCESSOR includes this header.
// Its loops are in the namespace BRAID_ROWS and use registers of BRAID_ROWS_REGISTER bytes.
#pragma once

#include <type_traits>

#include "braid/nn/kernels/activation_rows.h"
#include "braid/nn/kernels/capped_loops.h"
#include "braid/nn/kernels/cross_entropy_loops.h"
#include "braid/nn/kernels/generation_loops.h"
#include "braid/nn/kernels/norm_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/tile_loops.h"

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
constexpr RowKernels<T> kRows{norm_forward<T>,
                              norm_backward<T>,
                              gelu_forward<T>,
                              gelu_backward<T>,
                              gelu_forward<T, GeluErf>,
                              gelu_backward<T, GeluErf>,
                              gated_forward<T, SiluGate>,
                              gated_backward<T, SiluGate>,
                              gated_forward<T, GeluGate>,
                              gated_backward<T, GeluGate>,
                              rotary<T>,
                              sum_parts<MathOf<T>>};

template <class T>
const RowKernels<T>& set_of(std::type_identity<RowKernels<T>>) {
  return kRows<T>;
}
template <class T>
const CrossEntropyKernels<T>& set_of(std::type_identity<CrossEntropyKernels<T>>) {
  return kCrossEntropy<T>;
}
template <class M>
const CappedScoreKernels<M>& set_of(std::type_identity<CappedScoreKernels<M>>) {
  return kCappedScores<M>;
}
template <class T>
const ElementCopyKernels<T>& set_of(std::type_identity<ElementCopyKernels<T>>) {
  return kElementCopies<T>;
}
template <class T>
const GenerationKernels<T>& set_of(std::type_identity<GenerationKernels<T>>) {
  return kGeneration<T>;
}

template <class M>
const PlainTileKernels<M>& set_of(std::type_identity<PlainTileKernels<M>>) {
  return kPlainTiles<M>;
}

}  // namespace BRAID_ROWS

template <class Kernels, Processor processor>
const Kernels& compiled_kernels() {
  static_assert(processor == BRAID_PROCESSOR);
  return BRAID_ROWS::set_of(std::type_identity<Kernels>());
}

#define BRAID_INSTANTIATE(T)                                                                          \
  template const RowKernels<T>& compiled_kernels<RowKernels<T>, BRAID_PROCESSOR>();                   \
  template const CrossEntropyKernels<T>& compiled_kernels<CrossEntropyKernels<T>, BRAID_PROCESSOR>(); \
  template const ElementCopyKernels<T>& compiled_kernels<ElementCopyKernels<T>, BRAID_PROCESSOR>();   \
  template const GenerationKernels<T>& compiled_kernels<GenerationKernels<T>, BRAID_PROCESSOR>();
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(c10::BFloat16)
BRAID_INSTANTIATE(c10::Half)
template const CappedScoreKernels<float>& compiled_kernels<CappedScoreKernels<float>, BRAID_PROCESSOR>();
template const CappedScoreKernels<double>& compiled_kernels<CappedScoreKernels<double>, BRAID_PROCESSOR>();
template const PlainTileKernels<float>& compiled_kernels<PlainTileKernels<float>, BRAID_PROCESSOR>();
template const PlainTileKernels<double>& compiled_kernels<PlainTileKernels<double>, BRAID_PROCESSOR>();

}  // namespace braid::kernels
