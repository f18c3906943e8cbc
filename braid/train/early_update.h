// Updates parameters while the backward pass goes on, so that the disk of the optimizer's states works at the same
// time. A parameter is updated once its gradient is complete, replicas included, and the pass is in an earlier layer,
// where nothing reads it any more. An update that depends on the gradient norm is speculative (Optimizer::begin()).
#pragma once

#include <vector>

#include "braid/optim/optimizer.h"
#include "braid/sync/replication.h"
#include "braid/train/rank_model.h"

namespace braid::train {

class EarlyUpdate {
 public:
  // REQUIRES: `model`, `gradients` and `optimizer` outlive this.
  EarlyUpdate(RankModel& model, const sync::GradientSync& gradients, optim::Optimizer& optimizer, double clip_norm);

  // Called before a step's passes. `unclipped`: the step if its gradients are not clipped. Does nothing if the last
  // step was clipped, nor in the first step if the run clips.
  void begin(const optim::OptimizerStep& unclipped);
  // Called after GradientSync::ready() for the same parameter.
  void ready(const param::Parameter& param);
  // Called after the optimizer's step() or withdraw(), which ends the update.
  void end(double grad_norm);

 private:
  param::ParamStore& store_;
  const sync::GradientSync& gradients_;
  optim::Optimizer& optimizer_;
  const bool is_summed_;  // gradients are final some time after they are ready
  const double clip_norm_;
  bool expects_clipping_;
  std::vector<int> layer_of_param_;  // by Parameter::index
  std::vector<char> ready_;          // by Parameter::index: 1 if this rank's gradients are complete
  size_t first_updated_ = 0;         // index of the first parameter that may be updated
  bool begun_ = false;
};

}  // namespace braid::train
