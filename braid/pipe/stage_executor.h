// The interface of a pipeline rank: the compute ops of a schedule, and the tensors sent between stages. The runtime
// calls it; the trainer implements it on a model, tests on fake work.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "braid/schedule/action.h"

namespace braid::pipe {

class StageExecutor {
 public:
  // Tensors sent between two stages. Neighbours agree on number, shapes and types for each microbatch. Gradients are of
  // some of the activations, in their order.
  using Tensors = std::vector<at::Tensor>;

  virtual ~StageExecutor() = default;

  virtual void forward(int stage, int micro) = 0;
  virtual void full_backward(int stage, int micro) = 0;  // input gradient, then weight gradients
  virtual void input_grad(int stage, int micro) = 0;     // weight gradients stay queued
  virtual void weight_grad(int stage, int micro) = 0;
  // A fused pair: an F, and a B or I of another microbatch, in whatever order or overlap is fastest. The inputs of both
  // have been given; the results of both are asked for after it returns.
  virtual void overlapped(const Action& forward, const Action& backward) {
    this->forward(forward.stage, forward.micro);
    if (backward.op == Op::InputGrad) return input_grad(backward.stage, backward.micro);
    full_backward(backward.stage, backward.micro);
  }
  virtual void reduce_grad(int stage) = 0;  // every microbatch of the stage has closed its gradients

  // Ops that passes add to a schedule (schedule/passes.h). Executors without the feature keep these, which do nothing.
  virtual void unshard(int /*stage*/) {}
  virtual void reshard(int /*stage*/) {}
  virtual void recompute(int /*stage*/, int /*micro*/) {}
  virtual void update(int /*stage*/, int /*micro*/) {}

  // Return the forward's outputs for the next stage, and the backward's gradients for the stage before. They are
  // contiguous; the runtime keeps them until the transfer is done. Called once per (stage, micro).
  virtual Tensors outputs(int stage, int micro) = 0;
  virtual Tensors input_gradients(int stage, int micro) = 0;
  // Return buffers that a receive writes before forward() or a backward of the same (stage, micro) reads them.
  virtual Tensors input_buffers(int stage, int micro) = 0;
  virtual Tensors output_gradient_buffers(int stage, int micro) = 0;
  // In place of a receive when the neighbour is on this rank: its tensors as they are.
  virtual void give_inputs(int stage, int micro, Tensors tensors) = 0;
  virtual void give_output_gradients(int stage, int micro, Tensors tensors) = 0;
};

}  // namespace braid::pipe
