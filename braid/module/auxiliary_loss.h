// Auxiliary losses that a layer's forward adds to the loss of the model, such as the load-balancing loss of a router.
//
//   at::Tensor forward(at::Tensor x) {
//     ...
//     contribute_auxiliary_loss(balance, 0.01);
//     return y;
//   }
//
// A ModulePipeline minimises, over the microbatches of all data ranks, the mean (LossKind::Mean, weighted by rows) or
// the sum (LossKind::Sum) of
//
//   loss of the microbatch + sum over contributions of weight x loss
//
// A contribution is one more root of its stage's backward, so it is not sent between stages. For layers that run
// elsewhere (on one rank, or in DataParallel), the caller makes an AuxiliaryLossScope around them and adds total() to
// the loss.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace braid {

// A scope that collects the losses that layers contribute on this thread. Scopes nest: the innermost one collects.
class AuxiliaryLossScope {
 public:
  AuxiliaryLossScope();
  ~AuxiliaryLossScope();
  AuxiliaryLossScope(const AuxiliaryLossScope&) = delete;
  AuxiliaryLossScope& operator=(const AuxiliaryLossScope&) = delete;

  void add(const at::Tensor& loss, double weight);
  // Returns the sum of weight x loss, with its graph; undefined if nothing was contributed.
  const at::Tensor& total() const { return total_; }
  // Returns weight x loss of each contribution, in order.
  const std::vector<at::Tensor>& weighted() const { return weighted_; }

 private:
  AuxiliaryLossScope* const outer_;
  at::Tensor total_;
  std::vector<at::Tensor> weighted_;
};

// Contributes a loss from a layer's forward. `loss` has one element. It is a mean over the rows that the layer was
// given, like the loss of a microbatch with LossKind::Mean. Throws ConfigError if it has more elements, or if it
// requires a gradient and no scope collects it. Without a scope, a loss that requires no gradient has no effect.
void contribute_auxiliary_loss(const at::Tensor& loss, double weight = 1);

}  // namespace braid
