// bias + GELU, SwiGLU and the rotary turn against composed operations and their autograd: every type, odd sizes, any
// number of threads, and the same bits from every processor's code.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>

#include "braid/nn/kernels/activations.h"
#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/rotary.h"
#include "braid/nn/kernels/rows.h"
#include "tests/nn/kernel_case.h"

namespace braid::nn::kernels_activation_test {
namespace {

struct Shape {
  int64_t rows, width;
};

// One kernel: from inputs by name (rounded to a dtype) to results by name.
struct Kernel {
  std::string name;
  std::function<Results(const Shape&, at::ScalarType)> inputs;
  std::function<Results(const Results&)> fused;
  std::function<Results(const Results&, at::ScalarType)> composed;
};

Kernel gelu_kernel() {
  return {"BiasGelu",
          [](const Shape& s, at::ScalarType t) -> Results {
            const std::vector<int64_t> full{s.rows, s.width};
            return {{"h", kernel_input("h", full, t, 12)},
                    {"bias", kernel_input("bias", {s.width}, t)},
                    {"dy", kernel_input("dy", full, t)}};
          },
          [](const Results& in) -> Results {
            const at::Tensor h = in.at("h").clone(), bias = in.at("bias");
            const at::Tensor y = kernels::bias_gelu(h, bias);
            const at::Tensor dbias = kernels::bias_gelu_backward_(h, bias, in.at("dy"));
            return {{"y", y}, {"dh", h}, {"dbias", dbias}};
          },
          [](const Results& in, at::ScalarType t) -> Results {
            const at::Tensor h = leaf(in.at("h"), t), bias = leaf(in.at("bias"), t);
            const at::Tensor y = at::gelu(h + bias, "tanh");
            y.mul(in.at("dy").to(t)).sum().backward();
            return {{"y", y.detach()}, {"dh", h.grad()}, {"dbias", bias.grad()}};
          }};
}

Kernel swiglu_kernel() {
  return {"Swiglu",
          [](const Shape& s, at::ScalarType t) -> Results {
            return {{"gate_up", kernel_input("gate_up", {s.rows, 2 * s.width}, t, 12)},
                    {"dy", kernel_input("dy", {s.rows, s.width}, t)}};
          },
          [](const Results& in) -> Results {
            const at::Tensor gate_up = in.at("gate_up").clone();
            const at::Tensor y = kernels::swiglu(gate_up);
            kernels::swiglu_backward_(gate_up, in.at("dy"));
            return {{"y", y}, {"dgate_up", gate_up}};
          },
          [](const Results& in, at::ScalarType t) -> Results {
            const at::Tensor gate_up = leaf(in.at("gate_up"), t);
            const std::vector<at::Tensor> halves = gate_up.chunk(2, -1);
            const at::Tensor y = at::silu(halves[0]).mul(halves[1]);
            y.mul(in.at("dy").to(t)).sum().backward();
            return {{"y", y.detach()}, {"dgate_up", gate_up.grad()}};
          }};
}

// Rows are 2 sequences of `rows` tokens; 3 heads of 2 `width` features turn, 5 features after them stay.
constexpr int64_t kHeads = 3, kStay = 5;
Kernel rotary_kernel() {
  const auto rotation = [](const Results& in) {
    return kernels::Rotation{in.at("angles").cos(), in.at("angles").sin(), kHeads};
  };
  return {"Rotary",
          [](const Shape& s, at::ScalarType t) -> Results {
            const std::vector<int64_t> full{2, s.rows, kHeads * 2 * s.width + kStay};
            const at::ScalarType math = t == at::kDouble ? at::kDouble : at::kFloat;
            return {{"x", kernel_input("x", full, t)},
                    {"dy", kernel_input("dy", full, t)},
                    {"angles", kernel_input("angles", {s.rows, s.width}, math, 20)}};
          },
          [rotation](const Results& in) -> Results {
            const at::Tensor y = in.at("x").clone(), dx = in.at("dy").clone();
            kernels::rotate_(y, rotation(in), kernels::Turn::Forward);
            kernels::rotate_(dx, rotation(in), kernels::Turn::Back);
            return {{"y", y}, {"dx", dx}};
          },
          [rotation](const Results& in, at::ScalarType t) -> Results {
            const at::Tensor x = leaf(in.at("x"), t);
            const kernels::Rotation r = rotation(in);
            const int64_t half = r.cos.size(1);
            const at::Tensor cos = r.cos.to(t).unsqueeze(1), sin = r.sin.to(t).unsqueeze(1);
            const at::Tensor heads = x.narrow(-1, 0, kHeads * 2 * half).view({2, -1, kHeads, 2 * half});
            const at::Tensor a = heads.narrow(-1, 0, half), b = heads.narrow(-1, half, half);
            const at::Tensor turned = at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
            const at::Tensor y = at::cat({turned.flatten(2), x.narrow(-1, kHeads * 2 * half, kStay)}, -1);
            y.mul(in.at("dy").to(t)).sum().backward();
            return {{"y", y.detach()}, {"dx", x.grad()}};
          }};
}

class ActivationKernel : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ActivationKernel, testing::ValuesIn([] {
                           std::vector<Shape> shapes;
                           for (const int64_t rows : {1, 7, 35}) {
                             for (const int64_t width : {1, 3, 17, 768, 4095}) shapes.push_back({rows, width});
                           }
                           return shapes;
                         }()),
                         [](const auto& info) { return cat(info.param.rows, "x", info.param.width); });

TEST_P(ActivationKernel, AgreesWithComposedOperations) {
  for (const Kernel& kernel : {gelu_kernel(), swiglu_kernel(), rotary_kernel()}) {
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
      SCOPED_TRACE(cat(kernel.name, " ", at::toString(dtype)));
      const Results in = kernel.inputs(GetParam(), dtype);
      expect_as_good_as_composed(kernel.fused(in), dtype,
                                 [&](at::ScalarType type) { return kernel.composed(in, type); });
    }
  }
}

TEST_P(ActivationKernel, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const Kernel& kernel : {gelu_kernel(), swiglu_kernel(), rotary_kernel()}) {
    const Results in = kernel.inputs(GetParam(), at::kFloat);
    const Results one = with_threads(1, [&] { return kernel.fused(in); });
    for (const int threads : {2, 3}) expect_same_bits(with_threads(threads, [&] { return kernel.fused(in); }), one);
  }
}

// The kernels of other devices, run on the CPU.
TEST(ComposedKernels, KeepTheFusedOnesContracts) {
  namespace k = kernels;
  for (const at::ScalarType dtype : {at::kDouble, at::kBFloat16}) {
    const double bound = dtype == at::kDouble ? 1e-13 : 5e-3;
    const auto near = [&](const at::Tensor& a, const at::Tensor& b) { EXPECT_LT(kernel_error(a, b), bound); };
    const Results gelu = gelu_kernel().inputs({7, 17}, dtype), swiglu = swiglu_kernel().inputs({7, 17}, dtype);
    const at::Tensor h = gelu.at("h").clone(), h2 = h.clone(), bias = gelu.at("bias"), dy = gelu.at("dy");
    near(k::composed::bias_gelu(h, bias), k::bias_gelu(h, bias).to(at::kDouble));
    near(k::composed::bias_gelu_backward_(h, bias, dy), k::bias_gelu_backward_(h2, bias, dy).to(at::kDouble));
    near(h, h2.to(at::kDouble));
    const at::Tensor g = swiglu.at("gate_up").clone(), g2 = g.clone();
    near(k::composed::swiglu(g), k::swiglu(g).to(at::kDouble));
    k::composed::swiglu_backward_(g, swiglu.at("dy")), k::swiglu_backward_(g2, swiglu.at("dy"));
    near(g, g2.to(at::kDouble));
    const Results rotary = rotary_kernel().inputs({7, 17}, dtype);
    const k::Rotation rotation{rotary.at("angles").cos(), rotary.at("angles").sin(), kHeads};
    const at::Tensor x = rotary.at("x").clone(), x2 = x.clone();
    k::composed::rotate_(x, rotation, k::Turn::Back), k::rotate_(x2, rotation, k::Turn::Back);
    near(x, x2.to(at::kDouble));
  }
}

// From far below to far above zero, and what is no number.
at::Tensor hard_values() {
  const double inf = std::numeric_limits<double>::infinity();
  const at::Tensor few = at::empty({8}, at::kFloat);
  const double values[] = {0, -0.0, inf, std::nan(""), 1e-38, -3e4, 3e4, -1e-40};
  for (int i = 0; i < 8; ++i) few.data_ptr<float>()[i] = static_cast<float>(values[i]);
  return at::cat({at::linspace(-100, 100, 20001, at::kFloat), at::linspace(-4, 4, 20001, at::kFloat), few});
}

// |ours - exact| in units of the last place of `exact`, largest over elements, those below `smallest` left out.
double worst_ulps(const at::Tensor& ours, const at::Tensor& exact, double smallest) {
  const at::Tensor kept = exact.isfinite().logical_and(exact.abs().gt(smallest));
  const at::Tensor ulp = exact.abs().log2().floor().sub(23).exp2();
  const at::Tensor error = ours.to(at::kDouble).sub(exact).abs().div(ulp).masked_select(kept);
  EXPECT_TRUE(error.isfinite().all().item<bool>());
  return error.max().item<double>();
}

TEST(Gelu, IsAccurateToAFewUnitsInTheLastPlaceEverywhere) {
  const at::Tensor x = hard_values(), zero = at::zeros_like(x);
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor u = (wide * (wide.square() * 0.044715 + 1)).mul(std::sqrt(8 / M_PI));
  const at::Tensor exact = wide / (u.neg().exp() + 1);
  const at::Tensor y = kernels::bias_gelu(x, zero);
  EXPECT_LT(worst_ulps(y, exact, 1e-6), 25);  // relative error of exp(u) is u times that of u
  EXPECT_LT(worst_ulps(y.masked_select(x.gt(-1)), exact.masked_select(x.gt(-1)), 1e-30), 4);
  EXPECT_TRUE(y.isnan().equal(x.isnan()));
}

TEST(Swiglu, IsAccurateToAFewUnitsInTheLastPlaceEverywhere) {
  const at::Tensor x = hard_values(), wide = x.to(at::kDouble);
  const at::Tensor y = kernels::swiglu(at::cat({x, at::ones_like(x)}));
  EXPECT_LT(worst_ulps(y, wide / (wide.neg().exp() + 1), 1e-30), 4);
  EXPECT_TRUE(y.isnan().equal(x.isnan()));
}

TEST(RowKernels, GiveTheSameBitsOnEveryProcessor) {
  using namespace kernels;
  if (!can_run(Processor::Avx512)) GTEST_SKIP() << "one set of kernels here";
  const auto run = [](auto zero, Processor processor) -> Results {
    using T = decltype(zero);
    const at::Tensor h = hard_values().to(c10::CppTypeToScalarType<T>::value), dy = h.nan_to_num().flip(0).clamp(-9, 9);
    const at::Tensor y = at::zeros_like(h), dh = at::zeros_like(h), sums = at::zeros({h.numel()}, at::kFloat);
    const RowKernels<T>& set = kernels_for<RowKernels<T>>(processor);
    set.gelu_forward({h.numel(), h.data_ptr<T>(), dy.data_ptr<T>(), y.data_ptr<T>()}, {0, 1});
    set.gelu_backward({h.numel(), dy.data_ptr<T>(), h.data_ptr<T>(), dy.data_ptr<T>(), dh.data_ptr<T>()}, {0, 1},
                      sums.data_ptr<float>());
    const at::Tensor keep = h.isfinite();
    return {{"y", y.masked_select(keep)}, {"dh", dh.masked_select(keep)}, {"sums", sums.masked_select(keep)}};
  };
  expect_same_bits(run(float{}, Processor::Avx512), run(float{}, Processor::Baseline));
  expect_same_bits(run(c10::BFloat16{}, Processor::Avx512), run(c10::BFloat16{}, Processor::Baseline));
  expect_same_bits(run(c10::Half{}, Processor::Avx512), run(c10::Half{}, Processor::Baseline));
}

}  // namespace
}  // namespace braid::nn::kernels_activation_test
