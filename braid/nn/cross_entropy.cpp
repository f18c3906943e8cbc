// The loss makes two passes over the logits, each row in one piece:
//
//   forward    m = max, s = sum exp(x - m)             of the rank's own columns; then both are reduced over the group
//   backward   dx = g / n (exp(x - m) / s - onehot)    recomputes the exponentials, which would lose precision if they
//                                                      were kept in the logits' type
#include "braid/nn/cross_entropy.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/nn/regions.h"

namespace braid::nn {

VocabRange vocab_range(int64_t vocab, int64_t local_extent, const Communicator& group) {
  const int64_t first = group.rank() * local_extent;
  return {vocab, first, std::clamp<int64_t>(vocab - first, 0, local_extent)};
}

LossRows cross_entropy_rows(const kernels::Logits& logits, const at::Tensor& targets_n, const VocabRange& range,
                            Communicator& group) {
  at::Tensor column_n = targets_n.sub(range.first);
  column_n.masked_fill_(column_n.ge(range.real), -1);
  const kernels::SoftmaxSums own = kernels::softmax_sums(logits, range.real, column_n);

  const at::Tensor max_n = own.max_n.clone();
  all_reduce_(max_n, ReduceOp::Max, group);
  const at::Tensor sums_2n = at::empty({2, max_n.size(0)}, max_n.options());
  at::Tensor sum_n = sums_2n.select(0, 0), target_n = sums_2n.select(0, 1);
  sum_n.copy_(own.max_n.sub(max_n).exp_().mul_(own.sum_n));
  target_n.copy_(own.target_n);
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
