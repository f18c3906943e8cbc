// dy^T x against float64: odd shapes, garbage in the slot, strides that occur, any number of threads.
#include "braid/nn/kernels/product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "braid/base/errors.h"
#include "braid/nn/kernels/amx_registers.h"
#include "braid/nn/kernels/part_product.h"
#include "braid/nn/kernels/product_amx.h"
#include "braid/nn/kernels/product_bf16.h"
#include "tests/nn/formula_values.h"

namespace braid::kernels::product_test {
namespace {

struct Shape {
  int64_t n, o, i;
};

// Tiles are 14 outputs x 32 inputs, blocks 256 rows, tasks 56 outputs x 768 inputs. By AMX tiles are 32 x 32, made of
// 16 x 16 sums over 32 rows, blocks 1024 rows, and tasks have 64 outputs.
constexpr Shape kShapes[] = {{1, 1, 1},      {1, 14, 32},   {3, 13, 31},    {2, 15, 33},   {255, 28, 64},
                             {33, 49, 48},   {256, 29, 65}, {257, 57, 100}, {513, 5, 17},  {64, 114, 800},
                             {31, 81, 1600}, {0, 3, 4},     {1027, 33, 40}, {2100, 70, 65}};

class Product : public testing::TestWithParam<at::ScalarType> {
 protected:
  at::Tensor operand(const char* name, at::IntArrayRef shape) const {
    return formula_tensor(name, shape).to(GetParam());
  }
  at::ScalarType sums() const { return GetParam() == at::kDouble ? at::kDouble : at::kFloat; }
};
INSTANTIATE_TEST_SUITE_P(Types, Product, testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

at::Tensor exact_product(const at::Tensor& dy, const at::Tensor& x) {
  return at::mm(dy.to(at::kDouble).t(), x.to(at::kDouble));
}

void expect_close(const at::Tensor& slot, const at::Tensor& exact, int64_t n) {
  const double epsilon = slot.scalar_type() == at::kDouble ? 1e-15 : 1.2e-7;
  const double worst = slot.to(at::kDouble).sub(exact).abs().max().item<double>();
  EXPECT_LE(worst, epsilon * std::sqrt(static_cast<double>(n + 1)) * 2) << slot.sizes() << " over " << n;
}

TEST_P(Product, OverwritesGarbageAndAddsInTheSlotsPrecision) {
  for (const auto [n, o, i] : kShapes) {
    const at::Tensor dy = operand("dy", {n, o}), x = operand("x", {n, i});
    const at::Tensor slot = at::full({o, i}, std::numeric_limits<double>::quiet_NaN(), sums());
    const at::Tensor exact = exact_product(dy, x);
    accumulate_product(slot, dy, x, 0);
    expect_close(slot, exact, n);
    slot.copy_(formula_tensor("before", {o, i}));
    accumulate_product(slot, dy, x, 1);
    expect_close(slot, exact.add(formula_tensor("before", {o, i})), n);
  }
}

// Strides as autograd gives them: slices of wider rows, transposed and expanded tensors.
TEST_P(Product, TakesAnyStrides) {
  const at::Tensor wide = operand("wide", {9, 40}), tall = operand("tall", {20, 9});
  const at::Tensor slot = at::full({20, 17}, 0, sums());
  const auto expect_product = [&](const at::Tensor& dy, const at::Tensor& x) {
    accumulate_product(slot, dy, x, 0);
    expect_close(slot, exact_product(dy, x), 9);
  };
  expect_product(wide.narrow(1, 3, 20), wide.narrow(1, 23, 17));
  expect_product(tall.t(), wide.narrow(1, 0, 17));
  expect_product(operand("one", {1}).expand({9, 20}), operand("row", {1, 17}).expand({9, 17}));
}

// Shapes on both sides of a panel of 2^22 elements of b, by columns (o >= k) and by rows.
constexpr Shape kLayers[] = {{1, 1, 1}, {7, 20, 33}, {7, 33, 20}, {3, 2053, 2051}, {3, 2051, 2053}};

// Units in the last place of 1.
double unit(at::ScalarType type) {
  return type == at::kBFloat16 ? 1.0 / 128 : type == at::kHalf ? 1.0 / 1024 : type == at::kFloat ? 1.2e-7 : 2.3e-16;
}

TEST_P(Product, OfALayerIsRoundedOnce) {
  for (const auto [n, o, i] : kLayers) {
    const at::Tensor x = operand("x", {n, i}), weight = operand("weight", {o, i}), bias = operand("bias", {o});
    at::Tensor exact = at::mm(x.to(at::kDouble), weight.to(at::kDouble).t());
    const auto expect_rounded = [&, n = n, o = o, i = i](const at::Tensor& y) {
      const double worst = y.to(at::kDouble).sub(exact).abs().max().item<double>();
      const double summed = 4 * std::sqrt(static_cast<double>(i)) * std::min(unit(GetParam()), unit(at::kFloat));
      EXPECT_LE(worst, exact.abs().max().item<double>() * unit(GetParam()) / 2 + summed) << n << " " << o << " " << i;
    };
    const at::Tensor y = at::full({n, o}, std::numeric_limits<double>::quiet_NaN(), x.options());
    product_out(y, x, weight.t());
    expect_rounded(y);
    product_out(y, x, weight.t(), bias);
    exact.add_(bias.to(at::kDouble));
    expect_rounded(y);
  }
}

// Empty extents, expanded and transposed rows, a slice of wider results.
TEST_P(Product, OfALayerTakesAnyStridesAndNothing) {
  const at::Tensor wide = operand("wide", {9, 40}), out = at::full({9, 60}, 0, wide.options());
  const auto expect_product = [&](const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor y = out.narrow(0, 0, a.size(0)).narrow(1, 3, b.size(1));
    product_out(y, a, b);
    const at::Tensor exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    EXPECT_TRUE(y.to(at::kDouble).allclose(exact, 2 * unit(GetParam()), 1e-3 * unit(GetParam()) + 1e-6));
  };
  expect_product(wide.narrow(1, 3, 9), wide);
  expect_product(wide.t().narrow(0, 0, 9), wide);
  expect_product(operand("one", {1}).expand({9, 9}), operand("row", {1, 40}).expand({9, 40}));
  expect_product(wide.narrow(1, 0, 0), wide.narrow(0, 0, 0));  // no inputs: zeros
  expect_product(wide.narrow(0, 0, 0).narrow(1, 0, 9), wide);
  expect_product(wide.narrow(1, 0, 9), wide.narrow(1, 0, 0));
  EXPECT_EQ(out.select(1, 2).abs().sum().item<double>(), 0) << "beside the slice";
}

// 3 x 40000 is more than float16 holds.
TEST(ProductOfHalves, DoesNotOverflowOnTheWay) {
  const at::Tensor dy = at::full({3, 2}, 200, at::kHalf), x = at::full({3, 2}, 200, at::kHalf);
  const at::Tensor slot = at::ones({2, 2}, at::kFloat);
  accumulate_product(slot, dy, x, 1);
  EXPECT_TRUE(slot.eq(120001).all().item<bool>());
}

// The best kernel of this processor is in the tests above. This is each of them.
TEST(ProductOfBfloat16, OfEachInstructionSet) {
  if (!has_product_bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const std::pair<const char*, void (*)(const ProductBf16&)> kernels[] = {{"avx512", product_avx512},
                                                                          {"amx", product_amx}};
  for (const auto& [name, kernel] : kernels) {
    if (kernel == product_amx && !has_product_amx()) continue;
    SCOPED_TRACE(name);
    for (const auto [n, o, i] : kShapes) {
      if (n == 0) continue;
      const at::Tensor dy = formula_tensor("dy", {n, o}).to(at::kBFloat16);
      const at::Tensor x = formula_tensor("x", {n, i}).to(at::kBFloat16);
      const auto bits = [](const at::Tensor& rows) { return static_cast<const uint16_t*>(rows.const_data_ptr()); };
      const at::Tensor slot = at::full({o, i}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
      const ProductBf16 call{{bits(dy), o}, {bits(x), i}, n, o, i, 0, slot.mutable_data_ptr<float>()};
      kernel(call);
      const at::Tensor exact = exact_product(dy, x);
      expect_close(slot, exact, n);
      kernel({call.dy, call.x, n, o, i, 1, call.out});
      expect_close(slot, exact.mul(2), n);
      const at::Tensor longer = at::full({o * i + 3}, 0, at::kFloat);  // slots begin anywhere
      const at::Tensor unaligned = longer.narrow(0, 3, o * i).view({o, i});
      kernel({call.dy, call.x, n, o, i, 0, unaligned.mutable_data_ptr<float>()});
      expect_close(unaligned, exact, n);
    }
  }
}

TEST(ProductOfBfloat16, IsByTheBestInstructionSet) {
  if (!has_product_bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const at::Tensor dy = formula_tensor("dy", {300, 40}).to(at::kBFloat16);
  const at::Tensor x = formula_tensor("x", {300, 50}).to(at::kBFloat16);
  const auto product = [&](void (*kernel)(const ProductBf16&)) {
    const auto bits = [](const at::Tensor& rows) { return static_cast<const uint16_t*>(rows.const_data_ptr()); };
    const at::Tensor slot = at::empty({40, 50}, at::kFloat);
    kernel({{bits(dy), 40}, {bits(x), 50}, 300, 40, 50, 0, slot.mutable_data_ptr<float>()});
    return slot;
  };
  EXPECT_TRUE(product(product_bf16).equal(product(has_product_amx() ? product_amx : product_avx512)));
}

#if defined(__x86_64__)
// Returns the configuration of the thread's registers after a product, if it was `before`.
BRAID_AMX TileConfig config_after_product(const TileConfig& before) {
  _tile_loadconfig(&before);
  const at::Tensor rows = formula_tensor("rows", {40, 40}).to(at::kBFloat16), slot = at::empty({40, 40}, at::kFloat);
  accumulate_product(slot, rows, rows, 0);
  TileConfig after;
  _tile_storeconfig(&after);
  _tile_release();
  return after;
}

TEST(ProductOfBfloat16, LeavesTheRegistersOfAmxConfiguredAsBefore) {
  if (!has_product_amx()) GTEST_SKIP() << "this processor has no AMX";
  TileConfig own{.palette = 1};
  own.row_bytes[0] = 32;
  own.rows[0] = 4;
  const TileConfig after = config_after_product(own);
  EXPECT_EQ(std::memcmp(&after, &own, sizeof own), 0);
}
#endif

// LibTorch's own products use the same registers.
TEST(ProductOfBfloat16, LeavesTheLibrarysProductsAsTheyAre) {
  const at::Tensor a = formula_tensor("a", {70, 96}).to(at::kBFloat16);
  const at::Tensor b = formula_tensor("b", {96, 50}).to(at::kBFloat16);
  const at::Tensor before = at::mm(a, b), slot = at::full({96, 96}, 0, at::kFloat);
  for (int round = 0; round < 3; ++round) {
    accumulate_product(slot, a, a, 0);
    EXPECT_TRUE(at::mm(a, b).equal(before)) << round;
  }
}

TEST(ProductOfBfloat16, KeepsWhatBfloat16WouldRoundAway) {
  const at::Tensor dy = at::ones({2, 1}, at::kBFloat16), x = at::full({2, 1}, 256, at::kBFloat16);
  x[1].fill_(1);
  const at::Tensor slot = at::ones({1, 1}, at::kFloat);
  accumulate_product(slot, dy, x, 0);
  EXPECT_EQ(slot.item<float>(), 257);
}

TEST(ProductOfBfloat16, GivesTheSameBitsOnAnyNumberOfThreads) {
  const at::Tensor dy = formula_tensor("dy", {300, 130}).to(at::kBFloat16);
  const at::Tensor x = formula_tensor("x", {300, 90}).to(at::kBFloat16);
  const int before = at::get_num_threads();
  at::Tensor first;
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    const at::Tensor slot = at::full({130, 90}, 1, at::kFloat);
    accumulate_product(slot, dy, x, 1);
    if (!first.defined()) first = slot;
    EXPECT_TRUE(slot.equal(first)) << threads << " threads";
  }
  at::set_num_threads(before);
}

TEST(ProductOfMixedTypes, IsRefused) {
  const at::Tensor slot = at::ones({1, 1}, at::kFloat);
  EXPECT_THROW(accumulate_product(slot, at::ones({1, 1}, at::kFloat), at::ones({1, 1}, at::kBFloat16), 0),
               InternalError);
  EXPECT_THROW(accumulate_product(slot, slot, slot, 0.5), InternalError);
}

// A product in parts against float64, on operands of any strides.
TEST_P(Product, InPartsIsTheProduct) {
  for (const auto [n, o, i] : kShapes) {
    const at::Tensor a = operand("dy", {n, o}), b = operand("x", {n, i}), bias = operand("bias", {i});
    const at::Tensor exact = exact_product(a, b).add(bias.to(at::kDouble));
    for (const int count : {1, 3, 8}) {
      for (const bool neighbours : {false, true}) {  // inner elements are neighbours in memory
        const at::Tensor rows = neighbours ? a.t().contiguous() : a.t();
        const at::Tensor columns = neighbours ? b.t().contiguous().t() : b;
        const at::Tensor out = at::full({o, i}, std::numeric_limits<double>::quiet_NaN(), sums());
        product_in_parts(out, rows, columns, {count}, bias.to(sums()));
        expect_close(out, exact, n);
        const at::Tensor rounded = at::full({o, i}, std::numeric_limits<double>::quiet_NaN(), GetParam());
        product_in_parts(rounded, rows, columns, {count}, bias);
        EXPECT_TRUE(rounded.equal(out.to(GetParam())));
      }
    }
  }
}

// Ranks that have some rows or columns compute the bits of the whole, and so do ranks that have some parts of the
// inner dimension and add their sums in a tree.
TEST_P(Product, InPartsHasTheBitsOfTheWhole) {
  constexpr int64_t kRows = 61, kInner = 3 * 48, kColumns = 130;
  const at::Tensor a = operand("dy", {kRows, kInner}), b = operand("x", {kInner, kColumns});
  const at::Tensor whole = at::empty({kRows, kColumns}, sums());
  const std::vector<int64_t> segments{96, 48};
  product_in_parts(whole, a, b, {8, segments});
  const at::Tensor some = at::empty({17, 31}, sums());
  product_in_parts(some, a.narrow(0, 40, 17).contiguous(), b.narrow(1, 99, 31), {8, segments});
  EXPECT_TRUE(some.equal(whole.narrow(0, 40, 17).narrow(1, 99, 31)));
  for (const int64_t ranks : {2, 4, 8}) {
    const at::Tensor parts = at::empty({ranks, kRows, kColumns}, sums());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto own = [&](const at::Tensor& x, int dim) {
        return at::cat(
            {x.narrow(dim, rank * 96 / ranks, 96 / ranks), x.narrow(dim, 96 + rank * 48 / ranks, 48 / ranks)}, dim);
      };
      product_in_parts(parts[rank], own(a, 1), own(b, 0), {static_cast<int>(8 / ranks), {96 / ranks, 48 / ranks}});
    }
    EXPECT_TRUE(tree_sum(parts).equal(whole)) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace braid::kernels::product_test
