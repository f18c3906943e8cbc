// The fused kernels, composed of LibTorch operations. Roundings are those of the fused kernels: results are computed in
// float32 (float64 for float64) and rounded once.
#include "braid/nn/kernels/composed.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

namespace braid::kernels::composed {
namespace {

at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

at::Tensor over_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).sum(0); }

// Returns (sum - mean) rstd.
at::Tensor unit_of(const Normed& normed) {
  std::vector<int64_t> rows = normed.sum.sizes().vec();
  rows.back() = 1;
  const at::Tensor x = wide(normed.sum);
  return (normed.mean.defined() ? x.sub(normed.mean.view(rows)) : x).mul(normed.rstd.view(rows));
}

}  // namespace

at::Tensor sum_of(const Addends& in) {
  at::Tensor sum = wide(in.branch);
  if (in.branch_bias.defined()) sum = sum.add(in.branch_bias);
  return sum.add(in.residual).to(in.residual.scalar_type());
}

Normed norm_forward(const Addends& in, const NormParams& params) {
  Normed out;
  out.sum = in.branch.defined() ? composed::sum_of(in) : in.residual;
  at::Tensor x = wide(out.sum);
  if (params.kind == NormKind::Layer) {
    out.mean = x.mean(-1).view({-1});
    x = x.sub(x.mean(-1, /*keepdim=*/true));
  }
  out.rstd = x.square().mean(-1).add_(params.eps).rsqrt_().view({-1});
  at::Tensor y = unit_of(out).mul(wide(params.weight).add(params.offset));
  if (params.bias.defined()) y = y.add(params.bias);
  out.y = y.to(out.sum.scalar_type());
  return out;
}

NormGradients norm_backward(const NormCotangents& d, const Normed& normed, const NormParams& params) {
  const at::Tensor dy = wide(d.dy), unit = unit_of(normed);
  const at::Tensor g = dy.mul(wide(params.weight).add(params.offset));
  at::Tensor dx = g.sub(unit.mul(g.mul(unit).mean(-1, /*keepdim=*/true)));
  if (params.kind == NormKind::Layer) dx = dx.sub(g.mean(-1, /*keepdim=*/true));
  std::vector<int64_t> rows = normed.sum.sizes().vec();
  rows.back() = 1;
  dx = dx.mul(normed.rstd.view(rows));
  if (d.dsum.defined()) dx = dx.add(d.dsum);
  return {dx.to(normed.sum.scalar_type()), over_rows(dy.mul(unit)), over_rows(dy)};
}

namespace {

const char* name_of(GeluForm form) { return form == GeluForm::Tanh ? "tanh" : "none"; }

}  // namespace

at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias, GeluForm form) {
  return at::gelu(wide(h).add(bias), name_of(form)).to(h.scalar_type());
}

at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy, GeluForm form) {
  const at::Tensor dh = at::gelu_backward(wide(dy), wide(h).add(bias), name_of(form));
  h.copy_(dh);
  return over_rows(dh);
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const auto halves = wide(gate_up).chunk(2, -1);
  return at::silu(halves[0]).mul_(halves[1]).to(gate_up.scalar_type());
}

void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy) {
  const auto halves = wide(gate_up).chunk(2, -1), to = gate_up.chunk(2, -1);
  const at::Tensor d = wide(dy), dup = at::silu(halves[0]).mul_(d);
  to[0].copy_(at::silu_backward(d.mul(halves[1]), halves[0]));
  to[1].copy_(dup);
}

at::Tensor geglu(const at::Tensor& gate_up) {
  const auto halves = wide(gate_up).chunk(2, -1);
  return at::gelu(halves[0], "tanh").mul_(halves[1]).to(gate_up.scalar_type());
}

void geglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy) {
  const auto halves = wide(gate_up).chunk(2, -1), to = gate_up.chunk(2, -1);
  const at::Tensor d = wide(dy), dup = at::gelu(halves[0], "tanh").mul_(d);
  to[0].copy_(at::gelu_backward(d.mul(halves[1]), halves[0], "tanh"));
  to[1].copy_(dup);
}

void rotate_(const at::Tensor& x_btc, const Rotation& rotation, Turn turn) {
  const int64_t b = x_btc.size(0), t = x_btc.size(1), half = rotation.cos.size(1);
  const at::Tensor cos = rotation.cos.unsqueeze(1);
  const at::Tensor sin = turn == Turn::Forward ? rotation.sin.unsqueeze(1) : rotation.sin.unsqueeze(1).neg();
  const at::Tensor x = x_btc.narrow(2, 0, rotation.heads * 2 * half).view({b, t, rotation.heads, 2, half});
  const at::Tensor low = x.select(3, 0), high = x.select(3, 1);
  const at::Tensor turned_low = low.mul(cos).sub_(high.mul(sin));
  high.copy_(high.mul(cos).add_(low.mul(sin)));
  low.copy_(turned_low);
}

}  // namespace braid::kernels::composed
