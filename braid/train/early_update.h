// Updates parameters while the backward pass goes on, so that the disk of the optimizer's states works at the same
// time. A parameter is updated once its gradient is complete and the pass is in an earlier layer, where nothing reads
// it any more. This needs gradients that no other rank adds to. An update that depends on their norm is speculative
// (Optimizer::begin()).
#pragma once

#include <vector>

#include "braid/optim/optimizer.h"
#include "braid/train/rank_model.h"

namespace braid::train {

class EarlyUpdate {
 public:
  // REQUIRES: `model` and `optimizer` outlive this; the store is not sharded over ranks.
  EarlyUpdate(RankModel& model, optim::Optimizer& optimizer, double clip_norm);

  // Called before a step's passes. `unclipped`: the step if its gradients are not clipped. Does nothing if the last
  // step was clipped, nor in the first step if the run clips.
  void begin(const optim::OptimizerStep& unclipped);
  // Called when the gradients of a parameter are complete (GradSink::on_ready).
  void ready(const param::Parameter& param);
  // Called after the optimizer's step() or withdraw(), which ends the update.
  void end(double grad_norm);

 private:
  param::ParamStore& store_;
  optim::Optimizer& optimizer_;
  const double clip_norm_;
  bool expects_clipping_;
  std::vector<int> layer_of_param_;  // by Parameter::index
  std::vector<char> ready_;          // by Parameter::index: 1 if the gradients are complete
  size_t first_updated_ = 0;         // index of the first parameter that may be updated
  bool begun_ = false;
};

}  // namespace braid::train
