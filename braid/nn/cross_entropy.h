// Cross-entropy over a vocabulary whose columns are split over the tensor axis. The logits are never gathered. Two
// all-reduces exchange three numbers per row: first the maximum, then the sum of exponentials and the target's logit.
//
// Logits are float32, float64, bfloat16 or float16. The softmax and the losses are float32 (float64 for float64).
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "braid/comm/communicator.h"
#include "braid/nn/kernels/cross_entropy.h"

namespace braid::nn {

// The columns of this rank: entries first .. first + real - 1 of a vocabulary of `vocab` entries, then padding.
struct VocabRange {
  int64_t vocab = 0;
  int64_t first = 0;
  int64_t real = 0;
};
// Returns this rank's range if every rank of the group has `local_extent` columns.
VocabRange vocab_range(int64_t vocab, int64_t local_extent, const Communicator& group);

// The result of cross_entropy_rows().
struct LossRows {
  at::Tensor loss_n;
  kernels::SoftmaxGradient gradient;  // the argument of softmax_gradient_(), once the caller has set `step`
};
// Computes the losses of n rows, without autograd. With `parts`, on a CPU: the columns, padding included, are cut into
// so many parts, whose sums are added in a tree. REQUIRES: targets_n are entries of the vocabulary.
LossRows cross_entropy_rows(const kernels::Logits& logits, const at::Tensor& targets_n, const VocabRange& range,
                            Communicator& group, int parts = 0);

// Returns the targets as a tensor of one dim. check() fails on a CPU if a target is not an entry of the vocabulary.
at::Tensor checked_targets(const at::Tensor& targets_bt, const VocabRange& range);

// Returns the mean of the losses, summed in float64, as a scalar of their type.
at::Tensor mean_loss(const at::Tensor& loss_n);

}  // namespace braid::nn
