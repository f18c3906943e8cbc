// Batch normalization whose running statistics are those of minibatches, although a pipeline passes it microbatches.
// While training, a microbatch is normalized by its own mean and variance. At the end of the step the running
// statistics move once, by the mean and variance of all values of the minibatch (of all data ranks).
//
// Source: torchgpipe's DeferredBatchNorm (Kim et al., 2020, section 3.4). Unlike there, the running variance uses the
// unbiased variance, as in torch::nn::BatchNorm. So, if the layer's input is the same, the running statistics are those
// of a BatchNorm that sees the whole minibatch.
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

// A BatchNorm for inputs (rows, features, ...) of any dimension. Parameters and buffers have the names and shapes of
// BatchNorm1d, 2d and 3d. Without ModulePipeline or DataParallel, call begin_microbatch() before each microbatch and
// end_step() after the last. Only microbatches that train move the statistics. If a rank's module is in evaluation
// mode, it adds no values, but its statistics move with those of the ranks that train.
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
  std::function<void()> capture_state() override;

  const modules::BatchNormState& state() const { return state_; }

 private:
  torch::nn::BatchNormOptions options_;
  modules::BatchNormState state_;

  modules::MicrobatchContext context_{.purpose = modules::ForwardPurpose::Evaluation};
  // Moments by microbatch that trained in this step. Recomputing a microbatch replaces its entry.
  std::map<int64_t, at::Tensor> moments_;
};
TORCH_MODULE(DeferredBatchNorm);

// Replaces the layers that are BatchNorm1d, 2d or 3d; the new layers share their parameters and buffers. Returns the
// names of batch norms inside other modules ("block1.bn"), which cannot be replaced from outside. Those still update
// their statistics with every microbatch.
std::vector<std::string> defer_batch_norms(LayerList& layers);

}  // namespace braid
