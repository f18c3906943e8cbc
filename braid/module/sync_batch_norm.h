// Batch normalization over the minibatch of all ranks of a group, each of which has its own part. Outputs, gradients
// and running statistics are those of a BatchNorm that sees all parts as one batch.
//
// Source: Ioffe & Szegedy, "Batch Normalization" (2015). The backward pass needs two sums over the minibatch; both are
// exchanged, as torch.nn.SyncBatchNorm does.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/batch_norm_state.h"

namespace braid {

// A BatchNorm for inputs (rows, features, ...) of two to five dims, float32 or float64. The features are the same on
// every rank; the number of rows may differ, and be zero. Parameters and buffers have the names and shapes of
// BatchNorm1d, 2d and 3d.
//
// A forward that normalizes by the minibatch is collective, and so is its backward. All ranks run equally many of both,
// in the same order, from their own threads. If other collectives may come in between, give the modules of a model a
// group of their own (Communicator::split). The gradients of weight and bias are those of the rank's own part; their
// sum over the ranks is that of the minibatch. A second derivative (create_graph) is not supported.
class SyncBatchNormImpl : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  // `group` outlives this and its copies.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, Communicator& group);
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, const modules::BatchNormState& shared,
                    Communicator& group);
  void reset() override;
  // Throws ConfigError for an input of other dims, features or type, and if all ranks together have no more than one
  // value of a feature.
  at::Tensor forward(at::Tensor x);

  const modules::BatchNormState& state() const { return state_; }

 private:
  void refuse_other_inputs(const at::Tensor& x) const;
  at::Tensor normalized(const at::Tensor& x, const at::Tensor& moments) const;

  torch::nn::BatchNormOptions options_;
  modules::BatchNormState state_;
  Communicator* group_;
};
TORCH_MODULE(SyncBatchNorm);

// Replaces every BatchNorm1d, 2d and 3d that is an element of a Sequential: of `module` itself, or of one anywhere
// inside it. The new modules share parameters and buffers with the old. Returns the names of all other batch norms
// ("block1.bn"), which are members of their module's own type and cannot be replaced from outside. Those still
// normalize by their rank's part.
std::vector<std::string> sync_batch_norms(torch::nn::Module& module, Communicator& group);

}  // namespace braid
