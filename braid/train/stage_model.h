// One rank's part of the model: the blocks of its stage, their parameters, and where their gradients go.
// It knows nothing of schedules or optimizers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/nn/block.h"
#include "braid/optim/grad_norm.h"
#include "braid/spec/run_spec.h"
#include "braid/train/rank_groups.h"

namespace braid {

class StageModel {
 public:
  // `spec.model.vocab` is resolved. `groups` must outlive this.
  StageModel(const RunSpec& spec, const RankGroups& groups);

  // Through this stage's blocks. `x_btc` is undefined on the first stage.
  at::Tensor forward(at::Tensor x_btc, const Microbatch& microbatch);

  ParamStore& params() { return *store_; }
  GradSink& sink() { return *sink_; }
  WeightGradQueue& weight_grads() { return *weight_grads_; }
  bool is_first() const { return is_first_; }
  bool is_last() const { return is_last_; }
  // Whether this rank speaks for `param` in norms: no lower rank of the replica holds the same elements.
  bool counts(const Parameter& param) const;
  // Names of the whole model's parameters, the same on every rank.
  const ParamOrder& order() const { return order_; }

 private:
  const RankGroups& groups_;
  bool is_first_, is_last_;
  ParamOrder order_;
  std::unique_ptr<ParamStore> store_;
  std::unique_ptr<GradSink> sink_;
  std::unique_ptr<WeightGradQueue> weight_grads_;
  RankGenerator generator_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

// Names without repeats (a tied parameter once), in model order.
ParamOrder param_order(const ModelParams& params);

at::ScalarType scalar_type(const std::string& dtype);  // of train.dtype

}  // namespace braid
