// The interface of a pipeline rank: the compute ops of a schedule, and the tensors sent between stages. ScheduleRuntime
// calls it. The trainer implements it on a model; tests implement it on fake work.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "braid/schedule/action.h"

namespace braid::pipe {

class StageExecutor {
 public:
  // Tensors sent between two stages. Neighbours agree on number, shapes and types for each microbatch. There are
  // gradients of some of the activations, in the order of the activations.
  using Tensors = std::vector<at::Tensor>;

  virtual ~StageExecutor() = default;

  virtual void forward(int stage, int micro) = 0;
  virtual void full_backward(int stage, int micro) = 0;  // input gradient, then weight gradients
  virtual void input_grad(int stage, int micro) = 0;     // weight gradients stay queued
  virtual void weight_grad(int stage, int micro) = 0;
  // Runs a fused pair: an F, and a B or I of another microbatch, in the order or overlap that is fastest. The inputs of
  // both are given before the call, and the results of both are read after it returns.
  virtual void overlapped(const Action& forward, const Action& backward) {
    this->forward(forward.stage, forward.micro);
    if (backward.op == Op::InputGrad) return input_grad(backward.stage, backward.micro);
    full_backward(backward.stage, backward.micro);
  }
  virtual void reduce_grad(int stage) = 0;  // called when every microbatch of the stage has closed its gradients

  // Ops that passes add to a schedule (schedule/passes.h). The default implementations do nothing, for executors
  // without the feature.
  virtual void unshard(int /*stage*/) {}
  virtual void reshard(int /*stage*/) {}
  virtual void recompute(int /*stage*/, int /*micro*/) {}
  virtual void update(int /*stage*/, int /*micro*/) {}

  // Return the forward's outputs for the next stage, and the backward's gradients for the previous stage. The tensors
  // are contiguous, and the runtime keeps them until the transfer is done. Called once per (stage, micro).
  virtual Tensors outputs(int stage, int micro) = 0;
  virtual Tensors input_gradients(int stage, int micro) = 0;
  // Return buffers for a receive. They are filled before forward() or a backward of the same (stage, micro) reads them.
  virtual Tensors input_buffers(int stage, int micro) = 0;
  virtual Tensors output_gradient_buffers(int stage, int micro) = 0;
  // Pass the neighbour's tensors themselves, instead of a receive, if the neighbouring stage is on this rank.
  virtual void give_inputs(int stage, int micro, Tensors tensors) = 0;
  virtual void give_output_gradients(int stage, int micro, Tensors tensors) = 0;
};

}  // namespace braid::pipe
