// The fused norms against composed operations and their autograd: every type, odd sizes, any number of threads.
#include <ATen/ops/layer_norm.h>

#include "braid/base/errors.h"
#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/norm.h"
#include "tests/nn/kernel_case.h"

namespace braid::nn::kernels_norm_test {
namespace {

using kernels::NormKind;

struct Shape {
  NormKind kind;
  int64_t rows, width;
};

// The inputs of one case, rounded to a dtype.
struct Inputs {
  Inputs(const Shape& shape, at::ScalarType dtype) : kind(shape.kind) {
    const auto make = [&](const char* name, at::IntArrayRef s) { return kernel_input(name, s, dtype); };
    const std::vector<int64_t> full{shape.rows, shape.width};
    residual = make("residual", full), branch = make("branch", full), branch_bias = make("branch_bias", {shape.width});
    weight = make("weight", {shape.width}), bias = make("bias", {shape.width});
    dsum = make("dsum", full), dy = make("dy", full);
  }
  kernels::NormParams params() const { return {kind, weight, kind == NormKind::Layer ? bias : at::Tensor(), 1e-5}; }

  NormKind kind;
  at::Tensor residual, branch, branch_bias, weight, bias, dsum, dy;
};

at::Tensor composed_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, NormKind kind) {
  if (kind == NormKind::Layer) return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5);
  return x.mul(x.square().mean(-1, true).add(1e-5).rsqrt()).mul(weight);
}

Results composed(const Inputs& in, at::ScalarType dtype) {
  const at::Tensor residual = leaf(in.residual, dtype), branch = leaf(in.branch, dtype);
  const at::Tensor branch_bias = leaf(in.branch_bias, dtype);
  const at::Tensor weight = leaf(in.weight, dtype), bias = leaf(in.bias, dtype);
  const at::Tensor sum = residual.add(branch.add(branch_bias));
  const at::Tensor y = composed_norm(sum, weight, bias, in.kind);
  y.mul(in.dy.to(dtype)).sum().add(sum.mul(in.dsum.to(dtype)).sum()).backward();
  Results r{{"sum", sum.detach()},
            {"y", y.detach()},
            {"dresidual", residual.grad()},
            {"dbranch", branch.grad()},
            {"dweight", weight.grad()}};
  if (in.kind == NormKind::Layer) r["dbias"] = bias.grad();
  return r;
}

Results fused(const Inputs& in) {
  const kernels::Normed normed = kernels::norm_forward({in.residual, in.branch, in.branch_bias}, in.params());
  const kernels::NormGradients d = kernels::norm_backward({in.dsum, in.dy}, normed, in.params());
  return {{"sum", normed.sum}, {"y", normed.y},        {"dresidual", d.dx},
          {"dbranch", d.dx},   {"dweight", d.dweight}, {"dbias", d.dbias}};
}

class NormKernel : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Sizes, NormKernel, testing::ValuesIn([] {
                           std::vector<Shape> shapes;
                           for (const NormKind kind : {NormKind::Layer, NormKind::Rms}) {
                             for (const int64_t rows : {1, 7, 35}) {
                               for (const int64_t width : {1, 3, 17, 768, 4095}) shapes.push_back({kind, rows, width});
                             }
                           }
                           return shapes;
                         }()),
                         [](const auto& info) {
                           const Shape& s = info.param;
                           return cat(s.kind == NormKind::Layer ? "Layer" : "Rms", s.rows, "x", s.width);
                         });

TEST_P(NormKernel, AgreesWithComposedOperations) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    SCOPED_TRACE(at::toString(dtype));
    const Inputs in(GetParam(), dtype);
    expect_as_good_as_composed(fused(in), dtype, [&](at::ScalarType type) { return composed(in, type); });
  }
}

// The kernels of other devices, run on the CPU.
TEST_P(NormKernel, ComposedKeepsTheContract) {
  const Inputs in(GetParam(), at::kDouble);
  namespace composed_kernels = kernels::composed;
  const kernels::Normed normed = composed_kernels::norm_forward({in.residual, in.branch, in.branch_bias}, in.params());
  const kernels::NormGradients d = composed_kernels::norm_backward({in.dsum, in.dy}, normed, in.params());
  const Results expected = fused(in);
  const Results results{{"sum", normed.sum}, {"y", normed.y},        {"dresidual", d.dx},
                        {"dbranch", d.dx},   {"dweight", d.dweight}, {"dbias", d.dbias}};
  for (const auto& [name, value] : expected) EXPECT_LT(kernel_error(results.at(name), value), 1e-12) << name;
}

TEST_P(NormKernel, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Inputs in(GetParam(), dtype);
    const Results one = with_threads(1, [&] { return fused(in); });
    for (const int threads : {2, 3}) expect_same_bits(with_threads(threads, [&] { return fused(in); }), one);
  }
}

TEST(NormKernel, WithoutABranchNormalisesTheResidualItself) {
  const Inputs in({NormKind::Layer, 7, 33}, at::kFloat);
  const kernels::Normed normed = kernels::norm_forward({in.residual, {}, {}}, in.params());
  EXPECT_TRUE(normed.sum.is_same(in.residual));
  EXPECT_LT(relative_error(normed.y, composed_norm(in.residual, in.weight, in.bias, in.kind)), 1e-6);
  const at::Tensor with_zeros = kernels::norm_backward({at::zeros_like(in.dsum), in.dy}, normed, in.params()).dx;
  EXPECT_TRUE(kernels::norm_backward({{}, in.dy}, normed, in.params()).dx.equal(with_zeros));
}

TEST(NormKernel, AddsWithoutANorm) {
  const Inputs in({NormKind::Layer, 7, 33}, at::kFloat);
  EXPECT_TRUE(
      kernels::sum_of({in.residual, in.branch, in.branch_bias}).equal(in.residual + (in.branch + in.branch_bias)));
  EXPECT_TRUE(kernels::sum_of({in.residual, in.branch, {}}).equal(in.residual + in.branch));
}

// A large mean must not eat the variance.
TEST(NormKernel, KeepsSmallDifferencesAroundALargeMean) {
  Inputs in({NormKind::Layer, 3, 768}, at::kFloat);
  in.residual.add_(1e4);
  const kernels::Normed normed = kernels::norm_forward({in.residual, {}, {}}, in.params());
  const at::Tensor exact =
      composed_norm(in.residual.to(at::kDouble), in.weight.to(at::kDouble), in.bias.to(at::kDouble), NormKind::Layer);
  EXPECT_LT(relative_error(normed.y, exact), 3e-4);
}

TEST(NormKernel, RefusesWhatItWouldReadWrongly) {
  const Inputs in({NormKind::Layer, 4, 6}, at::kFloat);
  EXPECT_THROW(kernels::norm_forward({in.residual.t(), {}, {}}, in.params()), InternalError);
  EXPECT_THROW(kernels::norm_forward({in.residual, in.branch.to(at::kDouble), {}}, in.params()), InternalError);
  EXPECT_THROW(kernels::norm_forward({in.residual, {}, in.branch_bias}, in.params()), InternalError);
  kernels::NormParams wide = in.params();
  wide.weight = at::zeros({7}, at::kFloat);
  EXPECT_THROW(kernels::norm_forward({in.residual, {}, {}}, wide), InternalError);
}

}  // namespace
}  // namespace braid::nn::kernels_norm_test
