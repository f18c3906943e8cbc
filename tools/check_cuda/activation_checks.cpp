// Norms, GELU, SwiGLU and the rotary turn by the functions that the layers call. What is exact are the same operations
// composed of LibTorch's in float64.
#include <ATen/ops/arange.h>

#include "braid/nn/kernels/activations.h"
#include "braid/nn/kernels/composed.h"
#include "tools/check_cuda/kernel_checks.h"

namespace braid::cuda_check {
namespace {

using kernels::NormKind;

// The inputs beside the residual: all, or as few as possible.
enum class Company { Full, None };

void check_norm_of(const Setting& s, const Shape& shape, NormKind kind, Company company, Verdict& verdict) {
  const std::string at = cat(kind == NormKind::Layer ? ", Layer " : ", Rms ", text(shape));
  const auto rows = [&](int seed) { return input(s, {shape.rows, shape.width}, {seed, 2, shape.start}); };
  const auto vector = [&](int seed) { return input(s, {shape.width}, {seed, 2, shape.start}); };
  const Input residual = rows(1), branch = rows(2), dy = rows(3), dsum = rows(4);
  const Input branch_bias = vector(5), weight = vector(6), bias = vector(7);
  const bool full = company == Company::Full, layer = kind == NormKind::Layer;
  const at::Tensor none;
  const kernels::NormParams params{kind, weight.device, layer ? bias.device : none, 1e-5};
  const kernels::NormParams exact_params{kind, weight.exact, layer ? bias.exact : none, 1e-5};

  const kernels::Normed normed =
      kernels::norm_forward({residual.device, full ? branch.device : none, full ? branch_bias.device : none}, params);
  const at::Tensor sum = full ? residual.exact.add(branch.exact.add(branch_bias.exact)) : residual.exact;
  verdict.compare("sum" + at, normed.sum, sum, rounding(s.dtype));
  // From here on with the sum as it was rounded.
  const kernels::Normed exact =
      kernels::composed::norm_forward({normed.sum.cpu().to(at::kDouble), none, none}, exact_params);
  verdict.compare("y" + at, normed.y, exact.y, rounding(s.dtype));
  verdict.compare("rstd" + at, normed.rstd, exact.rstd, rounding(s.math()));
  if (layer) verdict.compare("mean" + at, normed.mean, exact.mean, rounding(s.math()));

  const kernels::NormGradients d = kernels::norm_backward({full ? dsum.device : none, dy.device}, normed, params);
  const kernels::NormGradients e =
      kernels::composed::norm_backward({full ? dsum.exact : none, dy.exact}, exact, exact_params);
  verdict.compare("dx" + at, d.dx, e.dx, 2 * rounding(s.dtype));
  verdict.compare("dweight" + at, d.dweight, e.dweight, sum_rounding(s, shape.rows));
  verdict.compare("dbias" + at, d.dbias, layer ? e.dbias : d.dbias.cpu(), sum_rounding(s, shape.rows));
}

}  // namespace

void check_norm(const Setting& s, Verdict& verdict) {
  for (const Shape& shape : shapes(s.sizes)) {
    for (const NormKind kind : {NormKind::Layer, NormKind::Rms}) {
      for (const Company company : {Company::Full, Company::None}) check_norm_of(s, shape, kind, company, verdict);
    }
  }
}

void check_join(const Setting& s, Verdict& verdict) {
  for (const Shape& shape : shapes(s.sizes)) {
    const Input residual = input(s, {shape.rows, shape.width}, {1, 2, shape.start});
    const Input branch = input(s, {shape.rows, shape.width}, {2, 2, shape.start});
    const Input bias = input(s, {shape.width}, {3, 2, shape.start});
    const at::Tensor with = kernels::sum_of({residual.device, branch.device, bias.device});
    const at::Tensor without = kernels::sum_of({residual.device, branch.device, {}});
    const at::Tensor exact = residual.exact.add(branch.exact);
    verdict.compare("with bias, " + text(shape), with, exact.add(bias.exact), rounding(s.dtype));
    verdict.compare("without, " + text(shape), without, exact, rounding(s.dtype));
  }
}

void check_gelu(const Setting& s, Verdict& verdict) {
  for (const Shape& shape : shapes(s.sizes)) {
    const Input h = input(s, {shape.rows, shape.width}, {1, 5, shape.start});
    const Input dy = input(s, {shape.rows, shape.width}, {2, 2, shape.start});
    const Input bias = input(s, {shape.width}, {3, 2, shape.start});
    const at::Tensor y = kernels::bias_gelu(h.device, bias.device);
    verdict.compare("y, " + text(shape), y, kernels::composed::bias_gelu(h.exact, bias.exact), rounding(s.dtype));
    const at::Tensor dh = h.exact.clone();
    const at::Tensor dbias = kernels::bias_gelu_backward_(h.device, bias.device, dy.device);
    const at::Tensor exact_dbias = kernels::composed::bias_gelu_backward_(dh, bias.exact, dy.exact);
    verdict.compare("dh, " + text(shape), h.device, dh, rounding(s.dtype));
    verdict.compare("dbias, " + text(shape), dbias, exact_dbias, sum_rounding(s, shape.rows));
  }
}

void check_swiglu(const Setting& s, Verdict& verdict) {
  for (const Shape& shape : shapes(s.sizes)) {
    const Input gate_up = input(s, {shape.rows, 2 * shape.width}, {1, 5, shape.start});
    const Input dy = input(s, {shape.rows, shape.width}, {2, 2, shape.start});
    const at::Tensor y = kernels::swiglu(gate_up.device);
    verdict.compare("y, " + text(shape), y, kernels::composed::swiglu(gate_up.exact), rounding(s.dtype));
    const at::Tensor gradient = gate_up.exact.clone();
    kernels::swiglu_backward_(gate_up.device, dy.device);
    kernels::composed::swiglu_backward_(gradient, dy.exact);
    verdict.compare("gradient, " + text(shape), gate_up.device, gradient, rounding(s.dtype));
  }
}

// Half heads that fill packs and that do not; features behind the heads stay as they are.
void check_rotary(const Setting& s, Verdict& verdict) {
  constexpr int64_t kHeads = 3, kBehind = 8;
  struct Case {
    int64_t batch, time, half;
    Start start;
  };
  std::vector<Case> cases{{2, 5, 32, Start::Aligned}, {2, 5, 32, Start::OneOff}, {1, 7, 3, Start::Aligned}};
  if (s.sizes == Sizes::Full) cases.push_back({8, 2048, 64, Start::Aligned});
  for (const auto& [batch, time, half, start] : cases) {
    const Input x = input(s, {batch, time, kHeads * 2 * half + kBehind}, {1, 2, start});
    const at::Tensor angle = at::arange(time * half, at::kDouble).mul(0.3).view({time, half});
    const at::Tensor cos = angle.cos().to(s.math()), sin = angle.sin().to(s.math());
    const kernels::Rotation rotation{cos.to(s.device), sin.to(s.device), kHeads};
    const kernels::Rotation exact_rotation{cos.to(at::kDouble), sin.to(at::kDouble), kHeads};
    const std::string at = cat(", ", batch, " x ", time, " x half of ", half);
    const at::Tensor turned = x.exact.clone();
    kernels::composed::rotate_(turned, exact_rotation, kernels::Turn::Forward);
    kernels::rotate_(x.device, rotation, kernels::Turn::Forward);
    verdict.compare("there" + at, x.device, turned, rounding(s.dtype));
    kernels::rotate_(x.device, rotation, kernels::Turn::Back);
    verdict.compare("and back" + at, x.device, x.exact, 3 * rounding(s.dtype));
  }
}

}  // namespace braid::cuda_check
