// The loss makes two passes over the logits, each row in one piece:
//
//   forward    m = max, s = sum exp(x - m)             of the rank's own columns; then both are reduced over the group
//   backward   dx = g / n (exp(x - m) / s - onehot)    recomputes the exponentials, which would lose precision if they
//                                                      were kept in the logits' type
#include "braid/nn/cross_entropy.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/nn/kernels/part_product.h"
#include "braid/nn/regions.h"

namespace braid::nn {

VocabRange vocab_range(int64_t vocab, int64_t local_extent, const Communicator& group) {
  const int64_t first = group.rank() * local_extent;
  return {vocab, first, std::clamp<int64_t>(vocab - first, 0, local_extent)};
}

namespace {

// Returns the sums of the parts of this rank's columns.
std::vector<kernels::SoftmaxSums> own_sums(const kernels::Logits& logits, const at::Tensor& column_n, int64_t real,
                                           int parts) {
  if (parts == 0) return {kernels::softmax_sums(logits, real, column_n)};
  std::vector<kernels::SoftmaxSums> sums;
  for (int part = 0; part < parts; ++part) {
    const int64_t begin = kernels::part_begin(logits.nv.size(1), part, parts);
    const int64_t end = kernels::part_begin(logits.nv.size(1), part + 1, parts);
    sums.push_back(kernels::softmax_sums_of(logits, {std::min(begin, real), std::min(end, real)}, column_n));
  }
  return sums;
}

}  // namespace

LossRows cross_entropy_rows(const kernels::Logits& logits, const at::Tensor& targets_n, const VocabRange& range,
                            Communicator& group, int parts) {
  at::Tensor column_n = targets_n.sub(range.first);
  column_n.masked_fill_(column_n.ge(range.real), -1);
  const std::vector<kernels::SoftmaxSums> own = own_sums(logits, column_n, range.real, parts);

  at::Tensor max_n = own[0].max_n.clone();
  for (const kernels::SoftmaxSums& part : own) at::maximum_out(max_n, max_n, part.max_n);
  all_reduce_(max_n, ReduceOp::Max, group);
  const at::Tensor sums_2n = at::empty({2, max_n.size(0)}, max_n.options());
  at::Tensor sum_n = sums_2n.select(0, 0), target_n = sums_2n.select(0, 1);
  std::vector<at::Tensor> of_parts;
  target_n.copy_(own[0].target_n);
  for (const kernels::SoftmaxSums& part : own) {
    of_parts.push_back(part.max_n.sub(max_n).exp_().mul_(part.sum_n));
    if (of_parts.size() > 1) target_n.add_(part.target_n);
  }
  sum_n.copy_(kernels::tree_sum(at::stack(of_parts)));
  all_reduce_(sums_2n, ReduceOp::Sum, group);
  return {sum_n.log().add_(max_n.sub(target_n)), {range.real, column_n, max_n, sum_n, {}, logits.cap}};
}

at::Tensor checked_targets(const at::Tensor& targets_bt, const VocabRange& range) {
  if (targets_bt.is_cpu() && targets_bt.numel() > 0) {
    check(targets_bt.min().item<int64_t>() >= 0 && targets_bt.max().item<int64_t>() < range.vocab,
          "targets are entries of the vocabulary");
  }
  return targets_bt.reshape({-1});
}

at::Tensor mean_loss(const at::Tensor& loss_n) { return loss_n.mean(at::kDouble).to(loss_n.scalar_type()); }

}  // namespace braid::nn
