// The weight-gradient product by AMX. A tile register has 16 rows of 64 bytes, and its instruction adds a product of
// tiles: sums [16 outputs][16 inputs] += dy [16 outputs][16 pairs] x [16 pairs][16 inputs]. The panels of x are those
// of product_bf16.cpp, and those of dy are transposed blocks of its panels:
//
//                    x: panels of 32 columns          dy: panels of 16 outputs, cut into blocks of 16 pairs
//   pair k           x0 x1 x2 .. x31                  output 0   pairs 16b .. 16b + 15
//   pair k + 1       x0 x1 x2 .. x31                  output 1   pairs 16b .. 16b + 15
//
// Four of the eight registers hold 32 x 32 sums, two hold dy and two x. A thread transposes the dy of 64 outputs and
// multiplies them with the panels of x, 256 rows at a time.
#include "braid/nn/kernels/product_amx.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "braid/base/errors.h"
#include "braid/nn/kernels/woven_pairs.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace braid::kernels {

#if defined(__x86_64__)
namespace {

#define BRAID_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

constexpr int64_t kSide = 16;                // rows of a tile register, and 4-byte elements of its rows
constexpr int64_t kBlockPairs = 128;         // pairs of rows in a block
constexpr int64_t kTileOutputs = 2 * kSide;  // outputs of the sums in registers
constexpr int64_t kTaskOutputs = 2 * kTileOutputs;
constexpr int64_t kTaskPanels = 24;  // panels of x that a task covers

// The operand of LDTILECFG (Intel's manual, volume 1, chapter 18): all tiles have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 0, first_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr TileConfig whole_tiles() {
  TileConfig config{.palette = 1};
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 4 * kSide;
    config.rows[tile] = kSide;
  }
  return config;
}

// A scope in which the thread's tiles are whole. Afterwards they are configured as before, because LibTorch's own
// kernels remember what they have configured.
class WholeTiles {
 public:
  BRAID_AMX WholeTiles() {
    static constexpr TileConfig kWhole = whole_tiles();
    _tile_storeconfig(&before_);
    _tile_loadconfig(&kWhole);
  }
  BRAID_AMX ~WholeTiles() {
    if (before_.palette == 0) {
      _tile_release();
    } else {
      _tile_loadconfig(&before_);
    }
  }
  WholeTiles(const WholeTiles&) = delete;

 private:
  TileConfig before_;
};

// The intrinsics of tiles do not say which memory they access. The compiler finishes writes before this, and begins
// reads after it.
inline void order_memory() { asm volatile("" ::: "memory"); }

// Transposes 16 x 16 elements.
BRAID_AMX void transpose_tile(const uint32_t* from, uint32_t* to) {
  __m512i a[kSide], b[kSide];
#pragma GCC unroll 16
  for (int r = 0; r < kSide; ++r) a[r] = _mm512_loadu_si512(from + r * kSide);
#pragma GCC unroll 8
  for (int r = 0; r < kSide; r += 2) {
    b[r] = _mm512_maskz_unpacklo_epi32(kAllLanes, a[r], a[r + 1]);
    b[r + 1] = _mm512_maskz_unpackhi_epi32(kAllLanes, a[r], a[r + 1]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kSide; r += 4) {
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
    _mm512_storeu_si512(to + c * kSide, _mm512_maskz_shuffle_i32x4(kAllLanes, b[c], b[4 + c], kEven));
    _mm512_storeu_si512(to + (4 + c) * kSide, _mm512_maskz_shuffle_i32x4(kAllLanes, b[8 + c], b[12 + c], kEven));
    _mm512_storeu_si512(to + (8 + c) * kSide, _mm512_maskz_shuffle_i32x4(kAllLanes, b[c], b[4 + c], kOdd));
    _mm512_storeu_si512(to + (12 + c) * kSide, _mm512_maskz_shuffle_i32x4(kAllLanes, b[8 + c], b[12 + c], kOdd));
  }
}

// Weaves a panel of up to 16 outputs and transposes it, block of pairs by block of pairs. `out` has whole blocks.
void transpose_panel(const Window& dy, uint32_t* out) {
  alignas(64) uint32_t woven[kSide * kSide];
  for (int64_t row = 0; row < dy.rows; row += 2 * kSide, out += kSide * kSide) {
    const int64_t rows = std::min(2 * kSide, dy.rows - row);
    if (rows < 2 * kSide) std::fill_n(woven, kSide * kSide, 0);
    weave({dy.data + row * dy.stride, dy.stride, rows, dy.columns}, kSide, woven);
    transpose_tile(woven, out);
  }
}

// Writes the sums of 32 outputs and 32 inputs over `blocks` blocks of pairs. The second panel of dy is `dy_step`
// elements after the first.
BRAID_AMX void multiply_tiles(const uint32_t* dy, int64_t dy_step, const uint32_t* x, int64_t blocks,
                              float (&sums)[kTileOutputs][kTileColumns]) {
  constexpr int64_t kRow = kTileColumns * 4;  // bytes of a row of x, and of `sums`
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  order_memory();
  for (int64_t block = 0; block < blocks; ++block, dy += kSide * kSide, x += kSide * kTileColumns) {
    _tile_loadd(4, dy, 4 * kSide);
    _tile_loadd(6, x, kRow);
    _tile_loadd(7, x + kSide, kRow);
    _tile_loadd(5, dy + dy_step, 4 * kSide);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, &sums[0][0], kRow);
  _tile_stored(1, &sums[0][kSide], kRow);
  _tile_stored(2, &sums[kSide][0], kRow);
  _tile_stored(3, &sums[kSide][kSide], kRow);
  order_memory();
}

// The destination of sums.
struct SumsOut {
  float* data;
  int64_t stride, rows, columns;  // at most 32 x 32
  bool add;
  bool last;  // true for the last block of rows: the kernel does not read the sums again

  bool can_stream() const {
    constexpr uintptr_t kLine = 64;
    return !add && last && columns == kTileColumns && reinterpret_cast<uintptr_t>(data) % kLine == 0 &&
           stride % kSide == 0;
  }
};

// Stores sums. Those that nothing reads soon go past the caches.
BRAID_AMX void store_sums(const SumsOut& out, const float (&sums)[kTileOutputs][kTileColumns]) {
  const bool streams = out.can_stream();
  for (int64_t r = 0; r < out.rows; ++r) {
    float* const row = out.data + r * out.stride;
    for (int64_t column = 0; column < out.columns; column += kSide) {
      const int64_t left = std::min(out.columns - column, kSide);
      const __mmask16 mask = static_cast<__mmask16>((1u << left) - 1);
      __m512 sum = _mm512_load_ps(&sums[r][column]);
      if (out.add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, row + column));
      if (streams) {
        _mm512_stream_ps(row + column, sum);
      } else {
        _mm512_mask_storeu_ps(row + column, mask, sum);
      }
    }
  }
}

// Up to kTaskOutputs outputs by up to kTaskPanels panels of inputs.
struct AmxTask {
  int64_t first_output, num_outputs;
  int64_t first_panel, end_panel;
};

void run_amx_task(const ProductBf16& call, const AmxTask& task, const uint32_t* woven_x) {
  constexpr int64_t kDyStep = kBlockPairs * kSide;  // elements of a panel of dy
  alignas(64) uint32_t dy[kTaskOutputs / kSide * kDyStep];
  alignas(64) float sums[kTileOutputs][kTileColumns];
  const int64_t depth = parts(parts(call.n, 2), kSide) * kSide;
  for (int64_t k = 0; k < depth; k += kBlockPairs) {
    const int64_t pairs = std::min(kBlockPairs, depth - k);
    for (int64_t panel = 0; panel < kTaskOutputs / kSide; ++panel) {
      const int64_t output = task.first_output + panel * kSide;
      const int64_t outputs = std::clamp<int64_t>(task.first_output + task.num_outputs - output, 0, kSide);
      const int64_t rows = std::min(2 * pairs, call.n - 2 * k);
      if (panel * kSide >= parts(task.num_outputs, kTileOutputs) * kTileOutputs) break;
      transpose_panel(
          {call.dy.data + 2 * k * call.dy.stride + (outputs > 0 ? output : 0), call.dy.stride, rows, outputs},
          dy + panel * kDyStep);
    }
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      for (int64_t output = 0; output < task.num_outputs; output += kTileOutputs) {
        multiply_tiles(dy + output / kSide * kDyStep, kDyStep, woven_x + (panel * depth + k) * kTileColumns,
                       pairs / kSide, sums);
        const int64_t column = panel * kTileColumns;
        store_sums({call.out + (task.first_output + output) * call.i + column, call.i,
                    std::min(kTileOutputs, task.num_outputs - output), std::min(kTileColumns, call.i - column),
                    call.beta != 0 || k > 0, k + pairs == depth},
                   sums);
      }
    }
  }
  _mm_sfence();  // orders the streamed sums before the signal that the task is done
}

// Asks the system for the registers: they are not part of a process until it does (Linux,
// Documentation/arch/x86/xstate).
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_product_amx() {
  static const bool has =
      has_product_bf16() && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") && may_use_tiles();
  return has;
}

void product_amx(const ProductBf16& call) {
  const int64_t pairs = parts(call.n, 2), depth = parts(pairs, kSide) * kSide, panels = parts(call.i, kTileColumns);
  const at::Tensor workspace = at::empty({panels * depth * kTileColumns}, at::kInt);
  uint32_t* const woven_x = static_cast<uint32_t*>(workspace.mutable_data_ptr());
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      uint32_t* const panel = woven_x + p * depth * kTileColumns;
      const int64_t column = p * kTileColumns;
      weave({call.x.data + column, call.x.stride, call.n, call.i - column}, kTileColumns, panel);
      std::fill_n(panel + pairs * kTileColumns, (depth - pairs) * kTileColumns, 0);
    }
  });
  const int64_t groups = parts(call.o, kTaskOutputs);
  at::parallel_for(0, groups * parts(panels, kTaskPanels), 1, [&](int64_t begin, int64_t end) {
    const WholeTiles tiles;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t output = t % groups * kTaskOutputs, panel = t / groups * kTaskPanels;
      run_amx_task(call,
                   {output, std::min(kTaskOutputs, call.o - output), panel, std::min(panels, panel + kTaskPanels)},
                   woven_x);
    }
  });
}

#else

bool has_product_amx() { return false; }
void product_amx(const ProductBf16&) { check(false, "this processor has no AMX"); }

#endif

}  // namespace braid::kernels
