// The weight-gradient product in bfloat16 by AVX512-BF16. Its instruction multiplies pairs: acc[j] += a[0] * b[j][0] +
// a[1] * b[j][1]. The sum runs over rows. So two rows of an operand are interleaved (woven) into one row of pairs,
// which is cut into panels as wide as a register tile:
//
//                             x: panels of 32 columns            dy: panels of 14 (16 with padding)
//   row 2k    a0 a1 a2 ..     a0 b0 a1 b1 ..  a31 b31            the same; a pair is broadcast
//   row 2k+1  b0 b1 b2 ..     next pair of rows
//
// A tile of 14 x 32 sums takes 28 registers; two more hold x's pairs and one a broadcast pair of dy. x is woven once,
// for all threads. A thread weaves four panels of dy at a time and multiplies them with the panels of x, so x is loaded
// from outside the first-level cache once for 56 outputs. It takes 256 rows at a time, so that the panels fit there.
#include "braid/nn/kernels/product_bf16.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/nn/kernels/amx_tiles.h"
#include "braid/nn/kernels/product_amx.h"
#include "braid/nn/kernels/woven_pairs.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace braid::kernels {

#if defined(__x86_64__)
namespace {

constexpr int64_t kTileRows = 14;
constexpr int64_t kLanes = kTileLanes;
constexpr int64_t kDyWidth = kTileLanes;  // columns of a woven panel of dy
constexpr int64_t kDepth = 128;           // pairs of rows in a block
constexpr int64_t kGroup = 4;             // panels of dy that a thread has woven at a time
constexpr int64_t kSpan = 24;             // panels of x that a task covers

// The destination of a tile's sums.
struct TileOut {
  float* data;
  int64_t stride, rows, columns;  // rows <= 14, columns <= 32
  bool add;
  bool last;  // true for the last block of rows: the kernel does not read the sums again
};

// Stores the sums past the caches, because they are as large as the parameters and the optimizer reads them much later.
BRAID_AVX512_BF16 void stream(const TileOut& out, const __m512 (&sums)[kTileRows][2]) {
#pragma GCC unroll 14
  for (int r = 0; r < kTileRows; ++r) {
    if (r >= out.rows) continue;
    _mm512_stream_ps(out.data + r * out.stride, sums[r][0]);
    _mm512_stream_ps(out.data + r * out.stride + kLanes, sums[r][1]);
  }
}

bool can_stream(const TileOut& out) {
  constexpr uintptr_t kLine = 64;
  return !out.add && out.last && out.columns == kTileColumns && reinterpret_cast<uintptr_t>(out.data) % kLine == 0 &&
         out.stride % kLanes == 0;
}

BRAID_AVX512_BF16 void store(const TileOut& out, const __m512 (&sums)[kTileRows][2]) {
  const __mmask16 low = static_cast<__mmask16>((1u << std::min(out.columns, kLanes)) - 1);
  const __mmask16 high = static_cast<__mmask16>((1u << std::max<int64_t>(out.columns - kLanes, 0)) - 1);
#pragma GCC unroll 14
  for (int r = 0; r < kTileRows; ++r) {
    if (r >= out.rows) continue;
    float* row = out.data + r * out.stride;
    __m512 first = sums[r][0], second = sums[r][1];
    if (out.add) {
      first = _mm512_add_ps(first, _mm512_maskz_loadu_ps(low, row));
      second = _mm512_add_ps(second, _mm512_maskz_loadu_ps(high, row + kLanes));
    }
    _mm512_mask_storeu_ps(row, low, first);
    _mm512_mask_storeu_ps(row + kLanes, high, second);
  }
}

// Computes the sums of a tile over `depth` pairs of rows.
BRAID_AVX512_BF16 inline __attribute__((always_inline)) void sum_pairs(const uint32_t* dy, const uint32_t* x,
                                                                       int64_t depth, __m512 (&sums)[kTileRows][2]) {
#pragma GCC unroll 14
  for (int r = 0; r < kTileRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  for (int64_t k = 0; k < depth; ++k, dy += kDyWidth, x += kTileColumns) {
    const __m512bh first = (__m512bh)_mm512_loadu_si512(x);
    const __m512bh second = (__m512bh)_mm512_loadu_si512(x + kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < kTileRows; ++r) {
      const __m512bh pair = (__m512bh)_mm512_set1_epi32(static_cast<int>(dy[r]));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pair, first);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pair, second);
    }
  }
}

// Computes one tile over `depth` pairs of rows.
BRAID_AVX512_BF16 void tile(const uint32_t* dy, const uint32_t* x, int64_t depth, const TileOut& out) {
  if (out.add) {  // prefetches the sums that store() will read
    for (int64_t r = 0; r < out.rows; ++r) {
      _mm_prefetch(out.data + r * out.stride, _MM_HINT_T0);
      _mm_prefetch(out.data + r * out.stride + kLanes, _MM_HINT_T0);
    }
  }
  __m512 sums[kTileRows][2];
  sum_pairs(dy, x, depth, sums);
  can_stream(out) ? stream(out, sums) : store(out, sums);
}

// Up to kGroup panels of outputs by up to kSpan panels of inputs.
struct Task {
  int64_t first_output, num_outputs;
  int64_t first_panel, end_panel;
};

void run_task(const ProductBf16& call, const Task& task, const uint32_t* woven_x) {
  alignas(64) uint32_t woven_dy[kGroup][kDepth * kDyWidth];
  const int64_t depth = parts(call.n, 2), panels = parts(task.num_outputs, kTileRows);
  const auto outputs = [&](int64_t panel) { return std::min(kTileRows, task.num_outputs - panel * kTileRows); };
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t block = std::min(kDepth, depth - k);
    for (int64_t p = 0; p < panels; ++p) {
      const uint16_t* dy = call.dy.data + 2 * k * call.dy.stride + task.first_output + p * kTileRows;
      weave({dy, call.dy.stride, std::min(2 * block, call.n - 2 * k), outputs(p)}, kDyWidth, woven_dy[p]);
    }
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      const int64_t column = panel * kTileColumns;
      for (int64_t p = 0; p < panels; ++p) {
        float* out = call.out + (task.first_output + p * kTileRows) * call.i + column;
        const TileOut to{out,
                         call.i,
                         outputs(p),
                         std::min(kTileColumns, call.i - column),
                         call.beta != 0 || k > 0,
                         k + block == depth};
        tile(woven_dy[p], woven_x + (panel * depth + k) * kTileColumns, block, to);
      }
    }
  }
  _mm_sfence();  // orders the streamed sums before the signal that the task is done
}

}  // namespace

bool has_product_bf16() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bf16");
}

void product_bf16(const ProductBf16& call) { has_product_amx() ? product_amx(call) : product_avx512(call); }

void product_avx512(const ProductBf16& call) {
  const int64_t depth = parts(call.n, 2), panels = parts(call.i, kTileColumns);
  const at::Tensor workspace = at::empty({panels * depth * kTileColumns}, at::kInt);
  uint32_t* woven_x = static_cast<uint32_t*>(workspace.mutable_data_ptr());
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t column = p * kTileColumns;
      weave({call.x.data + column, call.x.stride, call.n, call.i - column}, kTileColumns,
            woven_x + p * depth * kTileColumns);
    }
  });
  const int64_t outputs = kGroup * kTileRows, groups = parts(call.o, outputs);
  at::parallel_for(0, groups * parts(panels, kSpan), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t output = t % groups * outputs, panel = t / groups * kSpan;
      run_task(call, {output, std::min(outputs, call.o - output), panel, std::min(panels, panel + kSpan)}, woven_x);
    }
  });
}

namespace {

// Packs pairs that are neighbours in memory, four lanes and four pairs at a time. The last element of an odd number has
// a pair with zero.
void pack_neighbours(const PanelSource& source, int64_t width, uint32_t* to) {
  const auto* const from = static_cast<const uint16_t*>(source.data);
  const int64_t pairs = source.inner / 2, fours = source.lanes / 4 * 4;
  const auto pair = [&](int64_t lane, int64_t k) {
    uint32_t value = 0;
    std::memcpy(&value, from + lane * source.lane_stride + 2 * k, k < pairs ? sizeof(uint32_t) : sizeof(uint16_t));
    return value;
  };
  const auto four = [&](int64_t lane, int64_t k) {
    return _mm_loadu_ps(reinterpret_cast<const float*>(from + lane * source.lane_stride + 2 * k));
  };
  const int64_t depth = parts(source.inner, 2), whole = pairs / 4 * 4;
  for (int64_t lane = 0; lane < fours; lane += 4) {
    for (int64_t k = 0; k < whole; k += 4) {
      __m128 a = four(lane, k), b = four(lane + 1, k), c = four(lane + 2, k), d = four(lane + 3, k);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      float* const out = reinterpret_cast<float*>(to + k * width + lane);
      _mm_storeu_ps(out, a);
      _mm_storeu_ps(out + width, b);
      _mm_storeu_ps(out + 2 * width, c);
      _mm_storeu_ps(out + 3 * width, d);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t lane = k < whole ? fours : 0; lane < width; ++lane)
      to[k * width + lane] = lane < source.lanes ? pair(lane, k) : 0;
  }
}

void pack_pairs(const PanelSource& source, int64_t width, void* packed) {
  auto* const to = static_cast<uint32_t*>(packed);
  if (source.inner_stride == 1) return pack_neighbours(source, width, to);
  weave({static_cast<const uint16_t*>(source.data), source.inner_stride, source.inner, source.lanes}, width, to);
}

BRAID_AVX512_BF16 void multiply_pairs(const PackedTile& packed, const void* left, void* to) {
  const auto *dy = static_cast<const uint32_t*>(packed.rows), *x = static_cast<const uint32_t*>(packed.columns);
  __m512 sums[kTileRows][2];
  sum_pairs(dy, x, packed.depth, sums);
  float* const out = static_cast<float*>(to);
  const float* const before = static_cast<const float*>(left);
#pragma GCC unroll 14
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
    for (int s = 0; s < 2; ++s) {
      const int64_t at = r * kTileColumns + s * kLanes;
      _mm512_storeu_ps(out + at, left ? _mm512_add_ps(_mm512_loadu_ps(before + at), sums[r][s]) : sums[r][s]);
    }
  }
}

}  // namespace

const TileKernels& pair_tiles() { return has_product_amx() ? amx_tiles() : avx512_tiles(); }

const TileKernels& avx512_tiles() {
  static constexpr TileKernels kTiles{kTileRows,        kTileColumns, sizeof(uint16_t), 2,
                                      sizeof(uint32_t), pack_pairs,   multiply_pairs};
  return kTiles;
}

#else

bool has_product_bf16() { return false; }
void product_bf16(const ProductBf16&) { check(false, "this processor has no AVX512-BF16"); }
void product_avx512(const ProductBf16&) { check(false, "this processor has no AVX512-BF16"); }
const TileKernels& pair_tiles() { check(false, "this processor has no AVX512-BF16"); }
const TileKernels& avx512_tiles() { check(false, "this processor has no AVX512-BF16"); }

#endif

}  // namespace braid::kernels
