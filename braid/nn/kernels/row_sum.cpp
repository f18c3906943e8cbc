// Sums over rows. Threads divide the columns, so no two threads write the same sum.
#include "braid/nn/kernels/row_sum.h"

#include <ATen/ops/sum.h>

#include "braid/nn/kernels/baseline_target.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/vector.h"

namespace braid::kernels {
namespace {

using namespace baseline;

constexpr int64_t kWidth = 128;  // columns in a piece, whose sums stay in the first-level cache
constexpr int64_t kBlock = 64;   // rows that are summed before they are added to the total
constexpr int64_t kRows[] = {0};

template <class T>
struct Matrix {
  const T* data;
  int64_t rows, columns;
};

// Sums up to kWidth columns, starting at column `first`.
template <class T>
void sum_piece(const Matrix<T>& x, int64_t first, MathOf<T>* sums, double beta) {
  using M = MathOf<T>;
  const int64_t width = std::min(kWidth, x.columns - first);
  M total[kWidth] = {};
  for (int64_t begin = 0; begin < x.rows; begin += kBlock) {
    M block[kWidth] = {};
    for (int64_t row = begin; row < std::min(x.rows, begin + kBlock); ++row) {
      const T* values = x.data + row * x.columns + first;
      for_lanes<T>(
          width, [&](int64_t j, auto extent, int) __attribute__((always_inline)) {
            store(block + j, load(block + j, extent) + load(values + j, extent), extent);
          });
    }
    for (int64_t j = 0; j < width; ++j) total[j] += block[j];
  }
  for (int64_t j = 0; j < width; ++j) sums[first + j] = beta == 0 ? total[j] : sums[first + j] + total[j];
}

template <class T>
void sum_rows(const at::Tensor& sums_c, const at::Tensor& x_nc, double beta) {
  const Matrix<T> x{read<T>(x_nc), x_nc.size(0), x_nc.size(1)};
  MathOf<T>* sums = write<MathOf<T>>(sums_c);
  parallel_rows((x.columns + kWidth - 1) / kWidth, x.rows * kWidth, [&](RowRange pieces) {
    for (int64_t piece = pieces.begin; piece < pieces.end; ++piece) sum_piece(x, piece * kWidth, sums, beta);
  });
}

}  // namespace

void accumulate_row_sum(const at::Tensor& sums_c, const at::Tensor& x_nc, double beta) {
  check(beta == 0 || beta == 1, "a slot is overwritten or added to");
  check(sums_c.is_contiguous() && sums_c.numel() == x_nc.size(1), "a sum for each column");
  if (on_device::takes(x_nc)) return on_device::accumulate_row_sum(sums_c, x_nc, beta);
  if (!x_nc.is_cpu()) {
    const at::Tensor sums = at::sum(x_nc, at::IntArrayRef(kRows), false, sums_c.scalar_type());
    beta == 0 ? sums_c.copy_(sums) : sums_c.add_(sums);
    return;
  }
  check(sums_c.scalar_type() == math_type(x_nc), "sums are of the type that is computed with");
  const at::Tensor x = x_nc.contiguous();
  with_type(x, [&](auto zero) { sum_rows<decltype(zero)>(sums_c, x, beta); });
}

}  // namespace braid::kernels
