// Batch normalization whose running statistics are those of minibatches, though a pipeline shows it microbatches. While
// training, a microbatch is normalized by its own mean and variance; at the end of the step the running statistics move
// once, by the mean and variance of all values of the minibatch (of all data ranks).
//
// Source: torchgpipe's DeferredBatchNorm (Kim et al., 2020, section 3.4). Unlike there the variance that enters the
// running one is the unbiased, as in torch::nn::BatchNorm: where the layer's input is the same, the running statistics
// are those of a BatchNorm that sees the whole minibatch.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <map>
#include <string>
#include <vector>

#include "braid/module/batch_norm_state.h"
#include "braid/module/layer_list.h"
#include "braid/module/microbatch_listener.h"

namespace braid {

// For inputs (rows, features, ...) of any dimension; parameters and buffers have the names and shapes of BatchNorm1d,
// 2d and 3d. Without ModulePipeline or DataParallel, call begin_microbatch before each microbatch and end_step after
// the last; outside of a microbatch that trains, statistics do not move. A rank whose module is in evaluation mode
// counts nothing and moves with those that train.
class DeferredBatchNormImpl : public torch::nn::Cloneable<DeferredBatchNormImpl>, public modules::MicrobatchListener {
 public:
  explicit DeferredBatchNormImpl(int64_t num_features)
      : DeferredBatchNormImpl(torch::nn::BatchNormOptions(num_features)) {}
  explicit DeferredBatchNormImpl(const torch::nn::BatchNormOptions& options);
  DeferredBatchNormImpl(const torch::nn::BatchNormOptions& options, const modules::BatchNormState& shared);
  void reset() override;
  at::Tensor forward(at::Tensor x);
  void begin_microbatch(const modules::MicrobatchContext& context) override;
  void end_step(Communicator& data) override;

  const modules::BatchNormState& state() const { return state_; }

 private:
  torch::nn::BatchNormOptions options_;
  modules::BatchNormState state_;

  modules::MicrobatchContext context_{.purpose = modules::ForwardPurpose::Evaluation};
  // By microbatch that trained in this step. Recomputation replaces the entry of its microbatch.
  std::map<int64_t, at::Tensor> moments_;
};
TORCH_MODULE(DeferredBatchNorm);

// Replaces the layers that are BatchNorm1d, 2d or 3d, sharing their parameters and buffers. Gives the names of those
// within other modules, which cannot be reached from outside: "block1.bn". They go on counting microbatches.
std::vector<std::string> defer_batch_norms(LayerList& layers);

}  // namespace braid
