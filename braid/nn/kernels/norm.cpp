// Norms fused with the residual sum. On CPUs, tensors are passed to the row kernels as raw rows.
#include "braid/nn/kernels/norm.h"

#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/norm_arguments.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/part_product.h"
#include "braid/nn/kernels/processor.h"

namespace braid::kernels {
namespace {

void run_forward(const Addends& in, const NormParams& params, const Normed& out) {
  with_type(in.residual, [&](auto zero) {
    const auto rows = rows_of<decltype(zero)>(in, params, out);
    parallel_rows(num_rows(in.residual), rows.width,
                  [&](RowRange range) { best_kernels<RowKernels<decltype(zero)>>().norm_forward(rows, range); });
  });
}

}  // namespace

Normed norm_forward(const Addends& in, const NormParams& params) {
  if (on_device::takes(in.residual)) return on_device::norm_forward(in, params);
  if (!in.residual.is_cpu()) return composed::norm_forward(in, params);
  check_addends(in);
  check_norm(in, params);
  const Normed out = empty_normed(in, params);
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
    const auto rows = rows_of<T>(d, normed, params, out);
    const auto sum_rows = [&](RowRange range, MathOf<T>* to) {
      best_kernels<RowKernels<T>>().norm_backward(rows, range, to);
    };
    const at::Tensor sums = d.token_parts > 0 ? tree_sum(sums_over_tokens<T>(normed.sum, {2, d.token_parts}, sum_rows))
                                              : sums_over_rows<T>(normed.sum, 2, sum_rows);
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
