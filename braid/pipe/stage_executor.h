// What a pipeline rank can be asked to do: the compute ops of a schedule, and the tensors that travel between stages.
// The runtime calls it; the trainer implements it on a model, tests on fake work.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

class StageExecutor {
 public:
  virtual ~StageExecutor() = default;

  virtual void forward(int stage, int micro) = 0;
  virtual void full_backward(int stage, int micro) = 0;  // input gradient, then weight gradients
  virtual void input_grad(int stage, int micro) = 0;     // weight gradients stay queued
  virtual void weight_grad(int stage, int micro) = 0;
  virtual void reduce_grad(int stage) = 0;  // every microbatch of the stage has closed its gradients

  // What SendForward and SendBackward send. Contiguous; the runtime keeps it until the transfer is done.
  virtual at::Tensor output(int stage, int micro) = 0;
  virtual at::Tensor input_gradient(int stage, int micro) = 0;
  // Where RecvForward and RecvBackward write, before forward() or a backward of the same (stage, micro) reads it.
  virtual at::Tensor input_buffer(int stage, int micro) = 0;
  virtual at::Tensor output_gradient_buffer(int stage, int micro) = 0;
};

}  // namespace braid
