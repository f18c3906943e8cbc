// Every element has a thread, grids stay within what devices allow, and the product means dy^T x in BLAS's terms.
#include "braid/nn/kernels/row_parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "braid/nn/kernels/gemm_call.h"
#include "braid/nn/kernels/pack.h"

namespace braid::kernels::row_parts_test {
namespace {

constexpr int64_t kMostGridX = 2147483647, kMostGridY = 65535;

void expect_legal(const device::LaunchShape& shape) {
  EXPECT_LE(shape.blocks, kMostGridX);
  EXPECT_LE(shape.parts, kMostGridY);
  EXPECT_GE(shape.parts, 1);
  EXPECT_EQ(shape.threads % device::kWarp, 0);
  EXPECT_GT(shape.threads, 0);
  EXPECT_LE(shape.threads, device::kMostTeamThreads) << "a block's sums have room for so many";
}

TEST(LaunchShape, IsLegalForEverySize) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{33}, int64_t{768}, int64_t{50304},
                             int64_t{1} << 20, int64_t{1} << 40}) {
    expect_legal(device::flat_shape(size));
    expect_legal(device::team_shape(size, 96));
    expect_legal(device::team_shape(16, size));
    const RowParts parts = row_parts(size, 3);
    EXPECT_LE(parts.num, kMostParts);
    if (size < (int64_t{1} << 38)) expect_legal(column_shape(size, parts.num));
  }
  EXPECT_EQ(device::flat_shape(0).blocks, 0);
  EXPECT_EQ(device::team_shape(0, 5).blocks, 0);
  EXPECT_EQ(device::team_shape(10, 1).threads, 32);
  EXPECT_EQ(device::team_shape(10, 96).threads, 128);
  EXPECT_EQ(device::team_shape(10, 6288).threads, 512);
}

TEST(LaunchShape, ThreadsOfAColumnShapeCoverTheColumns) {
  for (int64_t packs = 1; packs < 1000; ++packs) {
    const device::LaunchShape shape = column_shape(packs, 1);
    EXPECT_GE(shape.blocks * shape.threads, packs);
    EXPECT_LT((shape.blocks - 1) * shape.threads, packs);
  }
}

TEST(RowParts, HoldEachRowOnce) {
  for (int64_t rows = 0; rows < 3000; rows = rows < 100 ? rows + 1 : rows * 5 / 4) {
    for (const int64_t blocks : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{700}, int64_t{5000}}) {
      const RowParts parts = row_parts(rows, blocks);
      int64_t next = 0;
      for (int64_t i = 0; i < parts.num; ++i) {
        const RowRange part = parts.part(i);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.begin, part.end);
        next = part.end;
      }
      EXPECT_EQ(next, rows);
      EXPECT_GE(parts.num, 1);
    }
  }
  EXPECT_EQ(row_parts(16384, 1).num, 512);
}

TEST(Packs, NeedRoomAndAlignment) {
  alignas(16) char memory[64] = {};
  const auto* start = reinterpret_cast<const float*>(memory);
  EXPECT_TRUE((fits_packs<float>(8, start, static_cast<const float*>(nullptr))));
  EXPECT_FALSE((fits_packs<float>(6, start)));
  EXPECT_FALSE((fits_packs<float>(8, start, start + 1)));
  EXPECT_FALSE((fits_packs<c10::BFloat16>(12, start)));
  EXPECT_TRUE((fits_packs<double>(2, start)));
}

// BLAS by its definition, in columns.
void gemm(const GemmCall& g, float beta) {
  const auto* a = static_cast<const float*>(g.a);
  const auto* b = static_cast<const float*>(g.b);
  for (int64_t col = 0; col < g.n; ++col) {
    for (int64_t row = 0; row < g.m; ++row) {
      float sum = 0;
      for (int64_t k = 0; k < g.k; ++k) sum += a[row + k * g.lda] * b[col + k * g.ldb];
      float& c = g.c[row + col * g.ldc];
      c = beta == 0 ? sum : beta * c + sum;
    }
  }
}

TEST(GemmCall, IsTheWeightGradient) {
  constexpr int64_t kN = 3, kO = 2, kI = 4;
  std::vector<float> dy, x;
  for (int i = 0; i < kN * 5; ++i) dy.push_back(static_cast<float>(i * i % 7));  // rows of 5, of which 2 count
  for (int i = 0; i < kN * 6; ++i) x.push_back(static_cast<float>(i * 3 % 11));  // rows of 6, of which 4 count
  std::vector<float> out(kO * kI, 100);
  const WeightProduct product{NarrowType::Bfloat16, dy.data(), x.data(), 5, 6, kN, kO, kI, 1, out.data()};
  gemm(gemm_call(product), product.beta);
  for (int64_t o = 0; o < kO; ++o) {
    for (int64_t i = 0; i < kI; ++i) {
      float expected = 100;
      for (int64_t n = 0; n < kN; ++n) expected += dy[n * 5 + o] * x[n * 6 + i];
      EXPECT_EQ(out[o * kI + i], expected) << o << " " << i;
    }
  }
}

}  // namespace
}  // namespace braid::kernels::row_parts_test
