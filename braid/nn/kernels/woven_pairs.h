// Two rows of bfloat16, woven into one row of pairs as product instructions take them.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "braid/nn/kernels/tile_sums.h"

namespace braid::kernels {

#define BRAID_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

// Mask of all elements; without masks, intrinsics of g++ 12 warn of an uninitialised register.
inline constexpr __mmask16 kAllLanes = 0xFFFF;

inline int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// A part of a matrix: `rows` x `columns`, starting at `data`.
struct Window {
  const uint16_t* data;
  int64_t stride, rows, columns;
};

// Weaves pairs of rows into `out` [parts(rows, 2)][width], padded with zeros. REQUIRES: has_product_bf16(); `width` is
// a multiple of kTileLanes.
BRAID_AVX512_BF16 inline void weave(const Window& in, int64_t width, uint32_t* out) {
  for (int64_t row = 0; row < in.rows; row += 2, out += width) {
    const uint16_t* first = in.data + row * in.stride;
    const bool single = row + 1 == in.rows;
    for (int64_t column = 0; column < width; column += kTileLanes) {
      const int64_t left = std::clamp<int64_t>(in.columns - column, 0, kTileLanes);
      const __mmask16 mask = static_cast<__mmask16>((1u << left) - 1);
      __m512i pair = _mm512_maskz_cvtepu16_epi32(kAllLanes, _mm256_maskz_loadu_epi16(mask, first + column));
      if (!single) {
        const __m256i second = _mm256_maskz_loadu_epi16(mask, first + in.stride + column);
        pair = _mm512_or_si512(pair,
                               _mm512_maskz_slli_epi32(kAllLanes, _mm512_maskz_cvtepu16_epi32(kAllLanes, second), 16));
      }
      _mm512_storeu_si512(out + column, pair);
    }
  }
}

}  // namespace braid::kernels

#endif
