// A rank's microbatches as recorded graphs: forward, backward and weight gradients of one microbatch are recorded, and
// replayed with other tokens.
//
//   graph 0   the first microbatch of a step: gradients overwrite their slots
//   graph 1   every later one: gradients are added
//
// A graph reads tokens, targets and the dropout key from fixed memory. Shapes and the gradient of the loss are
// constants of the recording. When the gradient of the loss changes (float16's loss scale), both graphs are recorded
// again.
//
// A replay returns no auxiliary losses or counts (nn/block.h), so a model that has some is not recorded.
#pragma once

#include <array>

#include "braid/device/step_graphs.h"
#include "braid/train/rank_model.h"

namespace braid::train {

class RecordedMicrobatches {
 public:
  // `model` outlives this. REQUIRES: it is the whole model, with an accumulating sink.
  RecordedMicrobatches(RankModel& model, device::MakeGraph make) : model_(model), graphs_(std::move(make)) {}

  // Called before a step of `num_microbatches` microbatches shaped as `like`, after the sink's begin_step() and before
  // any contribution. May record the graphs; then it begins the sink's step again.
  void begin_step(const nn::Microbatch& like, int num_microbatches);
  // Returns true if this step's microbatches are to be replayed.
  bool replays() const { return graphs_.replays(); }
  // Replays a graph with `microbatch`, and opens and closes the sink's slots for it. Returns the loss, a scalar that is
  // valid until the next call. Returns before the device has computed the loss and the gradients.
  at::Tensor replay(const nn::Microbatch& microbatch);
  const std::string& failure() const { return graphs_.failure(); }

  // Computes the operations that graph `piece` records, on the microbatch in fixed memory. It contributes to the sink
  // as microbatch `piece`.
  void compute(int piece);
  // Opens and closes every contribution of microbatch `micro`.
  void account_for(int micro);

 private:
  RankModel& model_;
  device::StepGraphs graphs_;
  nn::Microbatch fixed_;
  std::array<at::Tensor, 2> losses_;
  int num_replayed_ = 0;  // number of replays in this step
};

// Computes forward and backward of one microbatch through the whole model, weight gradients included. Returns the
// loss, detached.
at::Tensor compute_microbatch(RankModel& model, const nn::Microbatch& microbatch);

}  // namespace braid::train
