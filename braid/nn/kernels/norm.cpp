// Tensors to rows.
#include "braid/nn/kernels/norm.h"

#include <ATen/ops/empty_like.h>

#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"

namespace braid::kernels {
namespace {

void check_same(const at::Tensor& a, const at::Tensor& b) {
  check(!b.defined() || (b.scalar_type() == a.scalar_type() && b.sizes() == a.sizes() && b.is_contiguous()),
        "activations of one kernel call have one shape and dtype and are contiguous");
}

void check_vector(const at::Tensor& x, const at::Tensor& v) {
  check(!v.defined() || (v.scalar_type() == x.scalar_type() && v.numel() == x.size(-1) && v.is_contiguous()),
        "parameters of a norm have its input's dtype and last extent");
}

void check_addends(const Addends& a) {
  check_same(a.residual, a.branch);
  check_vector(a.residual, a.branch_bias);
  check(a.branch.defined() || !a.branch_bias.defined(), "a branch's bias has a branch");
}

void run_forward(const Addends& in, const NormParams& params, const Normed& out) {
  with_type(in.residual, [&](auto zero) {
    using T = decltype(zero);
    const NormForwardRows<T> rows{.kind = params.kind,
                                  .width = in.residual.size(-1),
                                  .eps = static_cast<MathOf<T>>(params.eps),
                                  .residual = read<T>(in.residual),
                                  .branch = read<T>(in.branch),
                                  .branch_bias = read<T>(in.branch_bias),
                                  .sum = in.branch.defined() ? write<T>(out.sum) : nullptr,
                                  .weight = read<T>(params.weight),
                                  .bias = read<T>(params.bias),
                                  .y = write<T>(out.y),
                                  .mean = write<MathOf<T>>(out.mean),
                                  .rstd = write<MathOf<T>>(out.rstd)};
    parallel_rows(num_rows(in.residual), rows.width,
                  [&](RowRange range) { best_kernels<RowKernels<T>>().norm_forward(rows, range); });
  });
}

}  // namespace

Normed norm_forward(const Addends& in, const NormParams& params) {
  if (on_device::takes(in.residual)) return on_device::norm_forward(in, params);
  if (!in.residual.is_cpu()) return composed::norm_forward(in, params);
  check_addends(in);
  check_vector(in.residual, params.weight);
  check_vector(in.residual, params.bias);
  check(params.weight.defined() && params.bias.defined() == (params.kind == NormKind::Layer),
        "LayerNorm has a weight and a bias, RMSNorm a weight");
  const auto per_row = [&] {
    return at::empty({num_rows(in.residual)}, in.residual.options().dtype(math_type(in.residual)));
  };
  Normed out;
  out.sum = in.branch.defined() ? at::empty_like(in.residual) : in.residual;
  out.y = at::empty_like(in.residual);
  if (params.kind == NormKind::Layer) out.mean = per_row();
  out.rstd = per_row();
  run_forward(in, params, out);
  return out;
}

NormGradients norm_backward(const NormCotangents& d, const Normed& normed, const NormParams& params) {
  if (on_device::takes(normed.sum)) return on_device::norm_backward(d, normed, params);
  if (!normed.sum.is_cpu()) return composed::norm_backward(d, normed, params);
  check_same(normed.sum, d.dy);
  check_same(normed.sum, d.dsum);
  NormGradients out;
  out.dx = at::empty_like(normed.sum);
  with_type(normed.sum, [&](auto zero) {
    using T = decltype(zero);
    const NormBackwardRows<T> rows{.kind = params.kind,
                                   .width = normed.sum.size(-1),
                                   .dsum = read<T>(d.dsum),
                                   .dy = read<T>(d.dy),
                                   .x = read<T>(normed.sum),
                                   .weight = read<T>(params.weight),
                                   .mean = read<MathOf<T>>(normed.mean),
                                   .rstd = read<MathOf<T>>(normed.rstd),
                                   .dx = write<T>(out.dx)};
    const at::Tensor sums = sums_over_rows<T>(normed.sum, 2, [&](RowRange range, MathOf<T>* to) {
      best_kernels<RowKernels<T>>().norm_backward(rows, range, to);
    });
    out.dweight = sums.select(0, 0);
    out.dbias = sums.select(0, 1);
  });
  return out;
}

at::Tensor sum_of(const Addends& in) {
  if (on_device::takes(in.residual)) return on_device::sum_of(in);
  if (!in.residual.is_cpu()) return composed::sum_of(in);
  check_addends(in);
  check(in.branch.defined(), "a sum has two addends");
  Normed out;
  out.sum = at::empty_like(in.residual);
  run_forward(in, {}, out);
  return out.sum;
}

}  // namespace braid::kernels
