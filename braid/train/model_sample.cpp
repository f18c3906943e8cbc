// Each pass between two looks at the clock.
#include "braid/train/model_sample.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include "braid/base/clock.h"
#include "braid/param/memory_account.h"
#include "braid/train/compute_device.h"
#include "braid/train/rank_model.h"

namespace braid::train {

ModelSample::ModelSample(const RunSpec& spec, const param::ModelParams& params, Communicator& tensor)
    : spec_(spec),
      options_(at::TensorOptions(scalar_type(spec.train.dtype)).device(compute_device(spec))),
      store_(params, Reduction::Fast, options_, spec.train.seed),
      sink_(param::accumulating_sink(store_)),
      queue_(*sink_),
      recompute_(spec::stage_recompute(spec.memory, 0)),
      rank_{tensor, queue_, nn::kept_by_layers(recompute_)} {
  const int64_t b = spec.train.microbatch, t = spec.model.context;
  microbatch_.tokens_bt = at::arange(b * t, at::kLong).mul(7919).remainder(spec.model.vocab).view({b, t});
  microbatch_.targets_bt = microbatch_.tokens_bt;
  microbatch_ = placed_on(compute_device(spec), microbatch_, spec.model.vocab);
  x_btc_ = at::full({b, t, spec.model.width}, 0.5, options_);
}

ModelSample::Piece::Piece(ModelSample& sample, const nn::ModelPiece& piece)
    : sample_(sample), has_input_(piece.block > 0) {
  const bool head = piece.block == sample.spec_.model.layers + 1;
  blocks_.push_back(nn::model_block(sample.spec_.model, piece, sample.store_, sample.rank_));
  segments_ = std::make_unique<nn::Segments>(
      blocks_, nn::plan_segments(sample.recompute_, {0, head ? 0 : 1, head ? 1 : 0}), sample.queue_);
}

PassTimes ModelSample::Piece::run(int64_t* kept) const {
  sample_.sink_->begin_step(1);
  nn::Passage passage(sample_.microbatch_);
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  const int64_t before = kept ? sample_.kept_bytes() : 0;
  const double start = sample_.now();
  const at::Tensor y = segments_->forward(has_input_ ? sample_.x_btc_ : at::Tensor(), passage).detach();
  const double forward = sample_.now();
  if (kept) *kept = sample_.kept_bytes() - before;
  at::Tensor dy = at::ones_like(y);
  const double backward = sample_.now();
  segments_->backward(std::move(passage), std::move(dy), nn::WeightPass::Later);
  const double input_grad = sample_.now();
  sample_.queue_.run(0);
  return {forward - start, input_grad - backward, sample_.now() - input_grad};
}

// The clock, when the device is done.
double ModelSample::now() const {
  if (!x_btc_.is_cpu()) at::zeros({1}, x_btc_.options()).item();
  return now_seconds();
}

int64_t ModelSample::kept_bytes() const {
  return param::memory_use(rank_.tensor.rank()).bytes[static_cast<size_t>(param::MemoryCategory::Activations)];
}

}  // namespace braid::train
