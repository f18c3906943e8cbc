// The registers of AMX, and the layouts of bfloat16 pairs that its instruction takes: sums [16 rows][16 columns] += a
// [16 rows][16 pairs] b [16 pairs][16 columns]. A pair has 4 bytes, and a register 16 rows of 64 bytes.
#pragma once

#include <cstdint>

#include "braid/nn/kernels/product_amx.h"
#include "braid/nn/kernels/woven_pairs.h"

namespace braid::kernels {

#if defined(__x86_64__)

// A caller of a function with this attribute REQUIRES has_product_amx(). The compiler may use these instructions in any
// line, so the function cannot ask by itself.
#define BRAID_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

inline constexpr int64_t kAmxSide = 16;  // rows of a register, and 4-byte elements of its rows

// The operand of LDTILECFG (Intel's manual, volume 1, chapter 18): all tiles have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 0, first_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr TileConfig whole_config() {
  TileConfig config{.palette = 1};
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 4 * kAmxSide;
    config.rows[tile] = kAmxSide;
  }
  return config;
}

// The intrinsics of tiles do not say which memory they access. The compiler finishes writes before this, and begins
// reads after it.
inline void order_memory() { asm volatile("" ::: "memory"); }

// Transposes 16 x 16 elements. `stride` is the distance between rows of `to`, in elements.
BRAID_AMX inline void transpose_tile(const uint32_t* from, uint32_t* to, int64_t stride) {
  __m512i a[kAmxSide], b[kAmxSide];
#pragma GCC unroll 16
  for (int r = 0; r < kAmxSide; ++r) a[r] = _mm512_loadu_si512(from + r * kAmxSide);
#pragma GCC unroll 8
  for (int r = 0; r < kAmxSide; r += 2) {
    b[r] = _mm512_maskz_unpacklo_epi32(kAllLanes, a[r], a[r + 1]);
    b[r + 1] = _mm512_maskz_unpackhi_epi32(kAllLanes, a[r], a[r + 1]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kAmxSide; r += 4) {
    a[r] = _mm512_maskz_unpacklo_epi64(0xFF, b[r], b[r + 2]);
    a[r + 1] = _mm512_maskz_unpackhi_epi64(0xFF, b[r], b[r + 2]);
    a[r + 2] = _mm512_maskz_unpacklo_epi64(0xFF, b[r + 1], b[r + 3]);
    a[r + 3] = _mm512_maskz_unpackhi_epi64(0xFF, b[r + 1], b[r + 3]);
  }
  // Quarter q of a[4 g + c] now has column 4 q + c of rows 4 g .. 4 g + 3.
  constexpr int kEven = 0x88, kOdd = 0xDD;  // quarters 0 and 2, 1 and 3, of both operands
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    b[c] = _mm512_maskz_shuffle_i32x4(kAllLanes, a[c], a[4 + c], kEven);
    b[4 + c] = _mm512_maskz_shuffle_i32x4(kAllLanes, a[8 + c], a[12 + c], kEven);
    b[8 + c] = _mm512_maskz_shuffle_i32x4(kAllLanes, a[c], a[4 + c], kOdd);
    b[12 + c] = _mm512_maskz_shuffle_i32x4(kAllLanes, a[8 + c], a[12 + c], kOdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    _mm512_storeu_si512(to + c * stride, _mm512_maskz_shuffle_i32x4(kAllLanes, b[c], b[4 + c], kEven));
    _mm512_storeu_si512(to + (4 + c) * stride, _mm512_maskz_shuffle_i32x4(kAllLanes, b[8 + c], b[12 + c], kEven));
    _mm512_storeu_si512(to + (8 + c) * stride, _mm512_maskz_shuffle_i32x4(kAllLanes, b[c], b[4 + c], kOdd));
    _mm512_storeu_si512(to + (12 + c) * stride, _mm512_maskz_shuffle_i32x4(kAllLanes, b[8 + c], b[12 + c], kOdd));
  }
}

// Weaves up to 16 columns and transposes them, block by block of 16 pairs: `out` is [blocks][16 columns][16 pairs],
// padded with zeros.
inline void transpose_panel(const Window& in, uint32_t* out) {
  alignas(64) uint32_t woven[kAmxSide * kAmxSide];
  for (int64_t row = 0; row < in.rows; row += 2 * kAmxSide, out += kAmxSide * kAmxSide) {
    const int64_t rows = std::min(2 * kAmxSide, in.rows - row);
    if (rows < 2 * kAmxSide) std::fill_n(woven, kAmxSide * kAmxSide, 0);
    weave({in.data + row * in.stride, in.stride, rows, in.columns}, kAmxSide, woven);
    transpose_tile(woven, out, kAmxSide);
  }
}

#endif

// A scope in which the thread's registers are whole: 16 rows of 64 bytes. Afterwards they are configured as before:
// oneDNN, whose kernels use the same registers, remembers what it has configured. Without AMX it does nothing.
class WholeTiles {
 public:
  WholeTiles(const WholeTiles&) = delete;
#if defined(__x86_64__)
  WholeTiles() {
    if (has_product_amx()) configure();
  }
  ~WholeTiles() {
    if (has_product_amx()) restore();
  }

 private:
  BRAID_AMX void configure() {
    static constexpr TileConfig kWhole = whole_config();
    _tile_storeconfig(&before_);
    _tile_loadconfig(&kWhole);
  }
  BRAID_AMX void restore() {
    if (before_.palette == 0) {
      _tile_release();
    } else {
      _tile_loadconfig(&before_);
    }
  }

  TileConfig before_;
#else
  WholeTiles() {}
#endif
};

}  // namespace braid::kernels
