// Cross-entropy, sums over rows, rows added to a table.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include "bench/kernels/kernel_case.h"
#include "braid/base/text.h"
#include "braid/nn/kernels/cross_entropy.h"
#include "braid/nn/kernels/row_sum.h"
#include "braid/nn/kernels/scatter.h"

namespace braid::bench {

// The composed loss and gradient are float32 softmaxes on what the logits hold.
inline void add_cross_entropy_cases(std::vector<KernelCase>& cases, at::IntArrayRef shape, at::ScalarType dtype) {
  const at::Tensor original = random(shape, dtype), logits = original.clone();
  const at::Tensor column = at::randint(shape[1], {shape[0]}, at::kLong), column_n1 = column.unsqueeze(1);
  const kernels::SoftmaxSums sums = kernels::softmax_sums(logits, shape[1], column);
  const at::Tensor step = at::full({}, 1.0 / static_cast<double>(shape[0]), at::kFloat);
  const kernels::SoftmaxGradient gradient{shape[1], column, sums.max_n, sums.sum_n, step};
  const std::string size = cat(shape[0], " x ", shape[1]);
  cases.push_back({"cross-entropy, forward",
                   size,
                   bytes_of({logits}),
                   {},
                   [=] { kernels::softmax_sums(logits, logits.size(1), column); },
                   [=] { at::log_softmax(logits, 1, at::kFloat).gather(1, column_n1); }});
  cases.push_back({"cross-entropy, backward", size, bytes_of({logits, logits}), [=] { logits.copy_(original); },
                   [=] { kernels::softmax_gradient_(logits, gradient); },
                   [=] {
                     const at::Tensor p = logits.softmax(1, at::kFloat).mul_(step);
                     logits.copy_(p.scatter_add_(1, column_n1, step.neg().expand_as(column_n1)));
                   }});
}

inline void add_weight_gradient_cases(std::vector<KernelCase>& cases, at::IntArrayRef shape, at::ScalarType dtype) {
  const at::Tensor dy = random(shape, dtype), sums = at::zeros({shape[1]}, at::kFloat);
  const std::string size = cat(shape[0], " x ", shape[1]);
  cases.push_back({"sum over rows",
                   size,
                   bytes_of({dy}),
                   {},
                   [=] { kernels::accumulate_row_sum(sums, dy, 1); },
                   [=] { sums.add_(dy.sum(0, false, at::kFloat)); }});
  const at::Tensor table = at::zeros({50304, shape[1]}, at::kFloat);
  const at::Tensor rows = at::randint(table.size(0), {shape[0]}, at::kLong);
  cases.push_back({"rows added to a table",
                   size,
                   bytes_of({dy}) + 8.0 * static_cast<double>(dy.numel()),
                   {},
                   [=] { kernels::add_rows_(table, dy, rows); },
                   [=] { table.index_add_(0, rows, dy.to(at::kFloat)); }});
}

}  // namespace braid::bench
