// Capped attention against all scores at once in float64, over drawn shapes: outputs, gradients, and the cached form.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "braid/base/text.h"
#include "braid/nn/attention.h"
#include "braid/nn/kernels/capped_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/tile_product.h"

namespace braid::nn::capped_attention_test {
namespace {

struct Shape {
  int64_t b, t, groups, kv_heads, width, window;
  double cap, scale;
  bool documents;
};

std::string text_of(const Shape& s) {
  return cat(s.b, " x ", s.t, ", ", s.groups, " x ", s.kv_heads, " heads of ", s.width, ", window ", s.window, ", cap ",
             s.cap, ", scale ", s.scale, s.documents ? ", documents" : "");
}

// Shapes of one tile and of several in both directions, and any number of features.
Shape drawn(std::mt19937& draw) {
  const auto one_of = [&](std::initializer_list<int64_t> list) { return *(list.begin() + draw() % list.size()); };
  Shape s{one_of({1, 2, 3}), one_of({1, 7, 33, 64, 200, 530}), one_of({1, 2, 3}),
          one_of({1, 2}),    one_of({1, 5, 16, 40}),           one_of({0, 0, 1, 9, 100})};
  s.cap = std::array{0.5, 20.0, 50.0}[draw() % 3];
  s.scale = draw() % 2 == 0 ? 0 : 0.3;
  s.documents = draw() % 3 == 0;
  return s;
}

// Two or more documents, beginning at drawn tokens.
at::Tensor documents_of(const Shape& s) {
  if (!s.documents) return {};
  return at::randint(4, {s.b, s.t}, at::kLong).eq(0).to(at::kLong).cumsum(1);
}

// All scores at once, in float64. Heads come before tokens, and those of keys and values are repeated.
struct Eager {
  at::Tensor q, k, v, probabilities, slopes;  // slopes: derivatives of the cap
  double scale;

  // Returns x, b x heads x t x width, as rows.
  static at::Tensor rows(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }
  at::Tensor outputs() const { return rows(at::matmul(probabilities, v)); }
};

Eager eager(const at::Tensor& qkv_btf, const Shape& s, const at::Tensor& documents_bt) {
  const int64_t h = s.groups * s.kv_heads;
  const auto parts =
      qkv_btf.view({s.b, s.t, -1, s.width}).transpose(1, 2).split_with_sizes({h, s.kv_heads, s.kv_heads}, 1);
  const auto shared = [&](const at::Tensor& x) { return x.repeat_interleave(s.groups, 1); };
  at::Tensor hidden = at::full({s.b, 1, s.t, s.t}, true, at::kBool).triu(1);
  if (s.window > 0) hidden = hidden.logical_or(at::full({s.t, s.t}, true, at::kBool).tril(-s.window));
  if (s.documents) {
    hidden = hidden.logical_or(documents_bt.unsqueeze(2).ne(documents_bt.unsqueeze(1)).unsqueeze(1));
  }
  const double scale = s.scale > 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.width));
  const at::Tensor k = shared(parts[1]), tanh = at::matmul(parts[0], k.transpose(2, 3)).mul(scale / s.cap).tanh();
  const at::Tensor probabilities = at::softmax(tanh.mul(s.cap).masked_fill(hidden, -INFINITY), -1);
  return {parts[0], k, shared(parts[2]), probabilities, 1 - tanh.square(), scale};
}

// Returns the gradient of the rows by the kernel's formula, from outputs `y` that may be rounded: their product with dy
// is subtracted from scores' gradients, so their rounding is in the result.
at::Tensor gradient_of(const Eager& a, const Shape& s, const at::Tensor& y, const at::Tensor& dy) {
  const auto heads = [&](const at::Tensor& x) { return x.view({s.b, s.t, -1, s.width}).transpose(1, 2); };
  const at::Tensor d = heads(dy), delta = d.mul(heads(y)).sum(-1, /*keepdim=*/true);
  const at::Tensor dscores = a.probabilities * (at::matmul(d, a.v.transpose(2, 3)) - delta) * a.slopes * a.scale;
  const auto summed = [&](const at::Tensor& x) { return x.view({s.b, s.kv_heads, s.groups, s.t, s.width}).sum(2); };
  const at::Tensor dk = summed(at::matmul(dscores.transpose(2, 3), a.q));
  const at::Tensor dv = summed(at::matmul(a.probabilities.transpose(2, 3), d));
  return Eager::rows(at::cat({at::matmul(dscores, a.k), dk, dv}, 1));
}

// The largest difference from the float64 result, relative to that result's largest element.
double difference(const at::Tensor& got, const at::Tensor& want) {
  return got.to(at::kDouble).sub(want).abs().max().item<double>() / want.abs().max().item<double>();
}

void expect_as_eager(const Shape& s, at::ScalarType type, double most) {
  const at::Tensor rows = at::randn({s.b, s.t, (s.groups + 2) * s.kv_heads * s.width}, at::kDouble).mul(3).to(type);
  const at::Tensor documents = documents_of(s), dy = at::randn({s.b, s.t, s.groups * s.kv_heads * s.width}).to(type);
  const at::Tensor wide = rows.to(at::kDouble).requires_grad_();
  const Eager all = eager(wide, s, documents);
  const at::Tensor want = all.outputs(), dwide = dy.to(at::kDouble);
  const at::Tensor dwant = torch::autograd::grad({want}, {wide}, {dwide}, /*retain_graph=*/true)[0];
  EXPECT_LT(difference(gradient_of(all, s, want, dwide), dwant), 1e-12) << text_of(s);
  for (const Keep keep : {Keep::Everything, Keep::Selected}) {
    const at::Tensor x = rows.detach().clone().requires_grad_();
    const at::Tensor y =
        attention_core(x, {s.groups * s.kv_heads, s.kv_heads, documents, keep, s.window, s.cap, s.scale}).value;
    EXPECT_LT(difference(y, want), most) << text_of(s) << ' ' << type;
    const at::Tensor dx = torch::autograd::grad({y}, {x}, {dy})[0];
    const at::Tensor of_rounded = gradient_of(all, s, y.detach().to(at::kDouble), dwide);
    EXPECT_LT(difference(dx, type == at::kDouble ? dwant : of_rounded), most) << text_of(s) << ' ' << type;
  }
}

TEST(CappedAttention, IsTheEagerOneOverDrawnShapes) {
  std::mt19937 draw(7);
  for (int i = 0; i < 40; ++i) {
    const Shape s = drawn(draw);
    expect_as_eager(s, at::kDouble, 1e-12);
    expect_as_eager(s, at::kFloat, 1e-5);
    expect_as_eager(s, at::kBFloat16, 1e-2);  // 8 bits of precision
    if (HasFailure()) break;
  }
}

// The derivative of the cap is as accurate near its limits, where 1 - tanh(x)^2 would cancel, as at 0.
template <class M>
void expect_accurate_gradients(const kernels::CappedScoreKernels<M>& of) {
  constexpr int64_t kCount = 1000;
  std::array<M, kCount> x, dp;
  for (int64_t i = 0; i < kCount; ++i) x[i] = M(i - kCount / 2) / 25;
  const std::array<M, kCount> scores = x;
  dp.fill(1);
  const kernels::RowRange all{0, kCount};
  const M zero = 0;
  of.gradient({x.data(), 1, kCount, &all, M(0.5)}, {dp.data(), &zero, &zero});
  double worst = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double z = static_cast<double>(scores[i]), cosine = std::cosh(z);
    worst = std::max(worst, std::abs(dp[i] * cosine * cosine / std::exp(0.5 * std::tanh(z)) - 1));
  }
  EXPECT_LT(worst, 16 * std::numeric_limits<M>::epsilon());
}

TEST(CappedAttention, GradientsAreAccurateNearTheCap) {
  using kernels::Processor;
  for (const Processor processor : {Processor::Baseline, Processor::Avx512}) {
    if (!kernels::can_run(processor)) continue;
    expect_accurate_gradients(kernels::kernels_for<kernels::CappedScoreKernels<float>>(processor));
    expect_accurate_gradients(kernels::kernels_for<kernels::CappedScoreKernels<double>>(processor));
  }
}

// Scores far beyond the cap, on both sides, leave finite probabilities: all of a row's may be the least.
TEST(CappedAttention, StaysFiniteFarBeyondTheCap) {
  for (const double factor : {1e3, -1e3}) {
    const at::Tensor rows = at::full({1, 40, 3 * 8}, 30.0, at::kFloat);
    rows.narrow(2, 0, 8).mul_(factor);
    const at::Tensor x = rows.requires_grad_();
    const at::Tensor y = attention_core(x, {.heads = 1, .kv_heads = 1, .cap = 50}).value;
    EXPECT_LT(y.sub(30).abs().max().item<double>(), 1e-4);
    EXPECT_TRUE(torch::autograd::grad({y}, {x}, {y.detach()})[0].isfinite().all().item<bool>());
  }
}

TEST(TileProduct, IsTheSameByBlasAndByTheLibrary) {
  const at::Tensor a = at::randn({5, 12}, at::kDouble), b = at::randn({7, 9}, at::kDouble);
  for (const auto form_a : {kernels::TileForm::Plain, kernels::TileForm::Transposed}) {
    for (const auto form_b : {kernels::TileForm::Plain, kernels::TileForm::Transposed}) {
      const at::Tensor mine = at::full({4, 11}, 2.0, at::kDouble), theirs = mine.clone();
      const auto product = [&](const at::Tensor& c) {
        return kernels::TileProduct<double>{4,
                                            6,
                                            5,
                                            0.5,
                                            {a.const_data_ptr<double>(), 12},
                                            form_a,
                                            {b.const_data_ptr<double>(), 9},
                                            form_b,
                                            1,
                                            {c.mutable_data_ptr<double>(), 11}};
      };
      kernels::multiply(product(mine));
      kernels::multiply_by_library(product(theirs));
      EXPECT_LT(mine.sub(theirs).abs().max().item<double>(), 1e-14);
      EXPECT_TRUE(mine.narrow(1, 6, 5).eq(2).all().item<bool>());
      EXPECT_FALSE(mine.narrow(1, 0, 6).eq(2).any().item<bool>());
    }
  }
}

}  // namespace
}  // namespace braid::nn::capped_attention_test
