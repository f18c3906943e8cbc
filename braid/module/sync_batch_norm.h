// Batch normalization over the minibatch of all ranks of a group, each of which sees its own part: outputs, gradients
// and running statistics are those of a BatchNorm that sees all parts as one batch.
//
// Source: Ioffe & Szegedy, "Batch Normalization" (2015), whose backward needs two sums over the minibatch; both are
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

// For inputs (rows, features, ...) of two to five dims, float32 or float64, with the same features on every rank; the
// number of rows may differ, and be zero. Parameters and buffers have the names and shapes of BatchNorm1d, 2d and 3d.
//
// While it normalizes by the minibatch, a forward is collective, and so is its backward: all ranks run as many of both,
// in the same order, from their own threads. Give the modules of a model a group of their own (Communicator::split)
// where other collectives may come in between. The gradients of weight and bias are those of the rank's own part; their
// sum over the ranks is that of the minibatch. They are not differentiable once more.
class SyncBatchNormImpl : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  // `group` outlives this and its copies.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, Communicator& group);
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, const modules::BatchNormState& shared,
                    Communicator& group);
  void reset() override;
  // Throws ConfigError for an input of another kind, and where all ranks together have one value of a feature only.
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

// Replaces every BatchNorm1d, 2d and 3d that is an element of a Sequential, of `module` itself or anywhere within it,
// sharing parameters and buffers. Gives the names of all others, which are members of their module's own type and
// cannot be replaced from outside: "block1.bn". Those go on normalizing by their rank's part.
std::vector<std::string> sync_batch_norms(torch::nn::Module& module, Communicator& group);

}  // namespace braid
