// The weight-gradient product by AMX. A tile register has 16 rows of 64 bytes, and its instruction adds a product of
// tiles: sums [16 outputs][16 inputs] += dy [16 outputs][16 pairs] x [16 pairs][16 inputs]. The panels of x are those
// of product_bf16.cpp, and those of dy are transposed blocks of its panels:
//
//                    x: panels of 32 columns          dy: panels of 16 outputs, cut into blocks of 16 pairs
//   pair k           x0 x1 x2 .. x31                  output 0   pairs 16b .. 16b + 15
//   pair k + 1       x0 x1 x2 .. x31                  output 1   pairs 16b .. 16b + 15
//
// Four of the eight registers hold 32 x 32 sums, two hold dy and two x. A thread transposes the dy of 64 outputs and
// multiplies them with the panels of x, 1024 rows at a time.
#include "braid/nn/kernels/product_amx.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "braid/base/errors.h"
#include "braid/nn/kernels/amx_registers.h"
#include "braid/nn/kernels/woven_pairs.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace braid::kernels {

#if defined(__x86_64__)
namespace {

constexpr int64_t kBlockPairs = 512;            // pairs of rows in a block
constexpr int64_t kTileOutputs = 2 * kAmxSide;  // outputs of the sums in registers
constexpr int64_t kTaskOutputs = 2 * kTileOutputs;
constexpr int64_t kTaskPanels = 24;  // panels of x that a task covers

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
  for (int64_t block = 0; block < blocks; ++block, dy += kAmxSide * kAmxSide, x += kAmxSide * kTileColumns) {
    _tile_loadd(4, dy, 4 * kAmxSide);
    _tile_loadd(6, x, kRow);
    _tile_loadd(7, x + kAmxSide, kRow);
    _tile_loadd(5, dy + dy_step, 4 * kAmxSide);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, &sums[0][0], kRow);
  _tile_stored(1, &sums[0][kAmxSide], kRow);
  _tile_stored(2, &sums[kAmxSide][0], kRow);
  _tile_stored(3, &sums[kAmxSide][kAmxSide], kRow);
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
           stride % kAmxSide == 0;
  }
};

// Asks for the sums that store_sums() will add to, while others are computed.
BRAID_AMX void prefetch(const SumsOut& out) {
  for (int64_t r = 0; out.add && r < out.rows; ++r) {
    _mm_prefetch(out.data + r * out.stride, _MM_HINT_T0);
    _mm_prefetch(out.data + r * out.stride + kAmxSide, _MM_HINT_T0);
  }
}

// Stores sums. Those that nothing reads soon go past the caches.
BRAID_AMX void store_sums(const SumsOut& out, const float (&sums)[kTileOutputs][kTileColumns]) {
  const bool streams = out.can_stream();
  for (int64_t r = 0; r < out.rows; ++r) {
    float* const row = out.data + r * out.stride;
    for (int64_t column = 0; column < out.columns; column += kAmxSide) {
      const int64_t left = std::min(out.columns - column, kAmxSide);
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
  constexpr int64_t kDyStep = kBlockPairs * kAmxSide;  // elements of a panel of dy
  alignas(64) uint32_t dy[kTaskOutputs / kAmxSide * kDyStep];
  alignas(64) float sums[kTileOutputs][kTileColumns];
  const int64_t depth = parts(parts(call.n, 2), kAmxSide) * kAmxSide;
  for (int64_t k = 0; k < depth; k += kBlockPairs) {
    const int64_t pairs = std::min(kBlockPairs, depth - k);
    for (int64_t panel = 0; panel < kTaskOutputs / kAmxSide; ++panel) {
      const int64_t output = task.first_output + panel * kAmxSide;
      const int64_t outputs = std::clamp<int64_t>(task.first_output + task.num_outputs - output, 0, kAmxSide);
      const int64_t rows = std::min(2 * pairs, call.n - 2 * k);
      if (panel * kAmxSide >= parts(task.num_outputs, kTileOutputs) * kTileOutputs) break;
      transpose_panel(
          {call.dy.data + 2 * k * call.dy.stride + (outputs > 0 ? output : 0), call.dy.stride, rows, outputs},
          dy + panel * kDyStep);
    }
    for (int64_t panel = task.first_panel; panel < task.end_panel; ++panel) {
      for (int64_t output = 0; output < task.num_outputs; output += kTileOutputs) {
        const int64_t column = panel * kTileColumns;
        const SumsOut out{call.out + (task.first_output + output) * call.i + column,
                          call.i,
                          std::min(kTileOutputs, task.num_outputs - output),
                          std::min(kTileColumns, call.i - column),
                          call.beta != 0 || k > 0,
                          k + pairs == depth};
        prefetch(out);
        multiply_tiles(dy + output / kAmxSide * kDyStep, kDyStep, woven_x + (panel * depth + k) * kTileColumns,
                       pairs / kAmxSide, sums);
        store_sums(out, sums);
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
  const int64_t pairs = parts(call.n, 2), depth = parts(pairs, kAmxSide) * kAmxSide,
                panels = parts(call.i, kTileColumns);
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
