// In a replay, the device repeats the arithmetic and the host repeats its bookkeeping.
#include "braid/train/recorded_microbatches.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "braid/param/memory_account.h"

namespace braid::train {
namespace {

void refill(at::Tensor& fixed, const at::Tensor& from) {
  if (!from.defined()) return;
  if (!fixed.defined() || fixed.sizes() != from.sizes()) fixed = at::empty_like(from);
  fixed.copy_(from, /*non_blocking=*/true);
}

}  // namespace

at::Tensor compute_microbatch(RankModel& model, const nn::Microbatch& microbatch) {
  const c10::AutoGradMode grad(true);
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  nn::Passage passage(microbatch);
  const at::Tensor loss = model.segments(0).forward(at::Tensor(), passage).detach();
  const at::Tensor seed = at::full_like(loss, microbatch.loss_gradient);
  model.segments(0).backward(std::move(passage), seed, nn::WeightPass::AtOnce);
  return loss;
}

void RecordedMicrobatches::begin_step(const nn::Microbatch& like, int num_microbatches) {
  num_replayed_ = 0;
  refill(fixed_.tokens_bt, like.tokens_bt);
  refill(fixed_.targets_bt, like.targets_bt);
  refill(fixed_.rows_bj, like.rows_bj);
  refill(fixed_.dropout_key_1, like.dropout_key_1);
  fixed_.dropout_key = like.dropout_key;
  fixed_.loss_gradient = like.loss_gradient;
  const int num_pieces = std::min(2, num_microbatches);
  bool recorded = false;
  const auto listener = std::exchange(model_.sink().on_ready, nullptr);  // recording makes no gradient ready
  graphs_.begin_step(std::bit_cast<uint64_t>(like.loss_gradient), num_pieces, [&](int piece) {
    if (piece == 0) model_.sink().begin_step(num_pieces);
    recorded = true;
    compute(piece);
  });
  model_.sink().on_ready = listener;
  if (!recorded) return;
  model_.weight_grads(0).drop();  // work left by a recording that failed
  model_.sink().begin_step(num_microbatches);
}

void RecordedMicrobatches::compute(int piece) {
  fixed_.micro = piece;
  losses_[static_cast<size_t>(piece)] = compute_microbatch(model_, fixed_);
}

void RecordedMicrobatches::account_for(int micro) {
  param::GradSink& sink = model_.sink();
  for (const param::Parameter& param : model_.params().params()) {
    for (const int use : param.local_uses) {
      sink.open(param, use, micro);
      sink.close(param, use, micro);
    }
  }
}

at::Tensor RecordedMicrobatches::replay(const nn::Microbatch& microbatch) {
  refill(fixed_.tokens_bt, microbatch.tokens_bt);
  refill(fixed_.targets_bt, microbatch.targets_bt);
  refill(fixed_.rows_bj, microbatch.rows_bj);
  refill(fixed_.dropout_key_1, microbatch.dropout_key_1);
  fixed_.dropout_key = microbatch.dropout_key;
  const int piece = num_replayed_++ == 0 ? 0 : 1;
  graphs_.replay(piece);
  account_for(microbatch.micro);
  return losses_[static_cast<size_t>(piece)];
}

}  // namespace braid::train
