// The sums and the gradient of the loss. On CPUs, tensors are passed to the row kernels as raw rows. Devices without
// kernels of their own use composed operations.
#include "braid/nn/kernels/cross_entropy.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/full.h>

#include <limits>

#include "braid/nn/kernels/cross_entropy_rows.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"

namespace braid::kernels {
namespace {

constexpr int64_t kColumns[] = {1};

at::Tensor capped(const at::Tensor& x, double cap) { return cap > 0 ? x.div(cap).tanh_().mul_(cap) : x; }

SoftmaxSums composed_sums(const Logits& logits, int64_t real, const at::Tensor& column_n) {
  const at::Tensor wide_nv = capped(logits.nv.to(math_type(logits.nv)), logits.cap), x_nv = wide_nv.narrow(1, 0, real);
  const at::Tensor target_n = wide_nv.gather(1, column_n.clamp_min(0).unsqueeze(1)).squeeze(1);
  target_n.masked_fill_(column_n.lt(0), 0);
  if (real == 0) {
    const at::Tensor none_n = at::full({x_nv.size(0)}, -std::numeric_limits<double>::infinity(), x_nv.options());
    return {none_n, none_n.exp(), target_n};
  }
  const at::Tensor max_n = at::amax(x_nv, at::IntArrayRef(kColumns));
  return {max_n, x_nv.sub(max_n.unsqueeze(1)).exp_().sum(at::IntArrayRef(kColumns)), target_n};
}

void composed_gradient_(const at::Tensor& logits_nv, const SoftmaxGradient& of) {
  const int64_t padding = logits_nv.size(1) - of.real;
  const at::Tensor x_nv = capped(logits_nv.to(math_type(logits_nv)), of.cap), p_nv = x_nv.clone();
  p_nv.sub_(of.max_n.unsqueeze(1)).exp_().mul_(of.step.div(of.sum_n).unsqueeze(1));
  p_nv.narrow(1, of.real, padding).zero_();
  const at::Tensor step_n = of.column_n.ge(0).to(p_nv.scalar_type()).mul_(of.step).neg_();
  p_nv.scatter_add_(1, of.column_n.clamp_min(0).unsqueeze(1), step_n.unsqueeze(1));
  if (of.cap > 0) p_nv.mul_(x_nv.div(of.cap).square_().neg_().add_(1));
  logits_nv.copy_(p_nv);
}

}  // namespace

SoftmaxSums softmax_sums(const Logits& of, int64_t real, const at::Tensor& column_n) {
  const at::Tensor& logits_nv = of.nv;
  if (of.cap == 0 && on_device::takes(logits_nv)) return on_device::softmax_sums(logits_nv, real, column_n);
  if (!logits_nv.is_cpu()) return composed_sums(of, real, column_n);
  return softmax_sums_of(of, {0, real}, column_n);
}

SoftmaxSums softmax_sums_of(const Logits& of, const ColumnRange& columns, const at::Tensor& all_column_n) {
  const at::Tensor& logits_nv = of.nv;
  const int64_t real = columns.end - columns.begin;
  at::Tensor column_n = all_column_n;
  if (columns.begin > 0) column_n = column_n.sub(columns.begin);
  if (columns.begin > 0 || columns.end < logits_nv.size(1)) column_n = column_n.masked_fill(column_n.ge(real), -1);
  const int64_t n = logits_nv.size(0), width = logits_nv.size(1);
  const at::Tensor sums_3n = at::empty({3, n}, logits_nv.options().dtype(math_type(logits_nv)));
  const SoftmaxSums sums{sums_3n.select(0, 0), sums_3n.select(0, 1), sums_3n.select(0, 2)};
  with_type(logits_nv, [&](auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const LogitRows<const T> logits{read<T>(logits_nv) + columns.begin, width, real, read<int64_t>(column_n),
                                    static_cast<M>(of.cap)};
    const SoftmaxSumRows<T> rows{logits, write<M>(sums.max_n), write<M>(sums.sum_n), write<M>(sums.target_n)};
    parallel_rows(n, width, [&](RowRange range) { best_kernels<CrossEntropyKernels<T>>().sums(rows, range); });
  });
  return sums;
}

void softmax_gradient_(const at::Tensor& logits_nv, const SoftmaxGradient& of) {
  if (of.cap == 0 && on_device::takes(logits_nv)) return on_device::softmax_gradient_(logits_nv, of);
  if (!logits_nv.is_cpu()) return composed_gradient_(logits_nv, of);
  const int64_t n = logits_nv.size(0), width = logits_nv.size(1);
  const at::Tensor max_n = of.max_n.contiguous(), scale_n = of.step.div(of.sum_n);
  with_type(logits_nv, [&](auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const LogitRows<T> logits{write<T>(logits_nv), width, of.real, read<int64_t>(of.column_n), static_cast<M>(of.cap)};
    const SoftmaxGradientRows<T> rows{logits, read<M>(max_n), read<M>(scale_n), of.step.item<M>()};
    parallel_rows(n, width, [&](RowRange range) { best_kernels<CrossEntropyKernels<T>>().gradient(rows, range); });
  });
}

}  // namespace braid::kernels
