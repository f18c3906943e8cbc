// A rank's microbatches as recorded graphs: forward, backward and weight gradients of one, replayed with other tokens.
//
//   graph 0   the first microbatch of a step: gradients overwrite their slots
//   graph 1   every later one: gradients are added
//
// What is read through fixed memory: tokens, targets, the dropout key. What is fixed in the recording: shapes and the
// gradient of the loss; when that changes (float16's loss scale), all is recorded anew. What blocks hand in
// (nn/block.h) is not read back: a model that hands in something is not recorded.
#pragma once

#include <array>

#include "braid/device/step_graphs.h"
#include "braid/train/rank_model.h"

namespace braid::train {

class RecordedMicrobatches {
 public:
  // `model` is the whole model, with an accumulating sink, and outlives this.
  RecordedMicrobatches(RankModel& model, device::MakeGraph make) : model_(model), graphs_(std::move(make)) {}

  // Before a step of `num_microbatches` shaped as `like`, after the sink's begin_step and before any contribution: may
  // record, and then begins the sink's step again.
  void begin_step(const nn::Microbatch& like, int num_microbatches);
  // Returns true if this step's microbatches are to be replayed.
  bool replays() const { return graphs_.replays(); }
  // The loss of `microbatch`, a scalar that holds until the next call; its gradients are in the sink's slots, which
  // have been opened and closed for it. Returns before the device is done.
  at::Tensor replay(const nn::Microbatch& microbatch);
  const std::string& failure() const { return graphs_.failure(); }

  // Computes what graph `piece` records: the microbatch in fixed memory, contributing to the sink as microbatch
  // `piece`.
  void compute(int piece);
  // Opens and closes every contribution of microbatch `micro`.
  void account_for(int micro);

 private:
  RankModel& model_;
  device::StepGraphs graphs_;
  nn::Microbatch fixed_;
  std::array<at::Tensor, 2> losses_;
  int num_replayed_ = 0;  // in this step
};

// Forward and backward of one microbatch through the whole model, weight gradients included. Returns the loss,
// detached.
at::Tensor compute_microbatch(RankModel& model, const nn::Microbatch& microbatch);

}  // namespace braid::train
