// Cross-entropy over a vocabulary whose columns are split over the tensor axis. The logits are never gathered: two
// all-reduces of one number (max) and two numbers (sum of exponentials, target's logit) per row.
//
// Logits are float32, float64, bfloat16 or float16; everything about the softmax is computed, and losses are returned,
// in float32 (float64 for float64).
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "braid/comm/communicator.h"
#include "braid/nn/kernels/cross_entropy.h"

namespace braid::nn {

// The columns of this rank: entries first .. first + real - 1 of a vocabulary of `vocab`, then padding.
struct VocabRange {
  int64_t vocab = 0;
  int64_t first = 0;
  int64_t real = 0;
};
// When every rank of the group has `local_extent` columns.
VocabRange vocab_range(int64_t vocab, int64_t local_extent, const Communicator& group);

// The mean over b x t of -log softmax(logits)[target], a scalar, the same on all ranks. Padded columns count as -inf.
// Backward overwrites `logits_btv` (contiguous) with their gradient, so that the loss needs one buffer of this size.
// Nothing else may write the logits in between or have saved them for its own backward. Backward runs once.
// targets_bt: int64, entries of the vocabulary; check() fails on a CPU when one is outside.
at::Tensor parallel_cross_entropy_(const at::Tensor& logits_btv, const at::Tensor& targets_bt, const VocabRange& range,
                                   Communicator& group);

// The same without autograd, for n rows at a time. targets_n are within the vocabulary.
struct LossRows {
  at::Tensor loss_n;
  kernels::SoftmaxGradient gradient;  // the caller sets its `step`; then softmax_gradient_() takes it
};
LossRows cross_entropy_rows(const at::Tensor& logits_nv, const at::Tensor& targets_n, const VocabRange& range,
                            Communicator& group);

// check() fails on a CPU when a target is no entry of the vocabulary. Returns the targets as one dim.
at::Tensor checked_targets(const at::Tensor& targets_bt, const VocabRange& range);

// Their mean, added up in float64, as a scalar of their type.
at::Tensor mean_loss(const at::Tensor& loss_n);

}  // namespace braid::nn
