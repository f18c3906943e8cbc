// Executes the actions of any schedule on user modules.
//
// Modules that are not braid's have no split between input and weight gradients: input_grad runs the whole backward and
// weight_grad does nothing. So a zero-bubble schedule gives the right gradients and the bubble of 1F1B.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "braid/module/loss_function.h"
#include "braid/module/minibatch_split.h"
#include "braid/module/shape_trace.h"
#include "braid/pipe/stage_executor.h"

namespace braid::modules {

// One step's work.
struct ModuleStep {
  MicrobatchContext context;  // of its first microbatch
  MinibatchSplit split;
  Tensors inputs, targets;      // of the whole minibatch; used on the ranks of the first and the last stage
  std::vector<double> weights;  // by microbatch: factors on its losses in the step's loss; empty where there are none
  const std::vector<std::map<int, StageShapes>>* shapes = nullptr;  // by kind of microbatch
};

class LayerExecutor final : public pipe::StageExecutor {
 public:
  // `stages` are this rank's, of `num_stages`; they outlive this.
  LayerExecutor(const std::map<int, LayerStage>& stages, int num_stages, LossFunction loss);

  void begin_step(ModuleStep step);
  // Before a microbatch's backward, and after the last one of the step. May be empty.
  std::function<void(int stage)> on_backward, on_reduce;
  // The step's loss, on the rank of the last stage.
  double loss() const;                     // weighted, over the microbatches, without auxiliary losses
  double count() const { return count_; }  // of a counted loss
  std::vector<Tensors> take_results();     // of an evaluation, by microbatch
  // The step's weighted auxiliary losses of this rank's stages, over the microbatches.
  double auxiliary_loss() const;

  void forward(int stage, int micro) override;
  void full_backward(int stage, int micro) override { input_grad(stage, micro); }
  void input_grad(int stage, int micro) override;
  void weight_grad(int /*stage*/, int /*micro*/) override {}
  void reduce_grad(int stage) override;
  Tensors outputs(int stage, int micro) override;
  Tensors input_gradients(int stage, int micro) override;
  Tensors input_buffers(int stage, int micro) override;
  Tensors output_gradient_buffers(int stage, int micro) override;
  void give_inputs(int stage, int micro, Tensors tensors) override;
  void give_output_gradients(int stage, int micro, Tensors tensors) override;

 private:
  // From forward to the end of the backward, of one microbatch on one stage.
  struct InFlight {
    Tensors inputs, outputs, output_gradients, input_gradients;
    at::Tensor auxiliary;  // weighted; undefined: none
  };
  bool trains() const { return step_.context.purpose == ForwardPurpose::Training; }
  const StageShapes& shapes(int stage, int micro) const { return step_.shapes->at(step_.split.kind(micro)).at(stage); }
  Tensors part(const Tensors& whole, int micro) const;
  Tensors run_stage(int stage, int micro, InFlight& flight);
  void take_loss(InFlight& flight, int micro, const Tensors& outputs);
  void check_outputs(int stage, int micro, const Tensors& outputs) const;

  const std::map<int, LayerStage>& stages_;
  int last_stage_;
  LossFunction loss_function_;
  ModuleStep step_;
  std::map<std::pair<int, int>, InFlight> in_flight_;  // by (stage, microbatch)
  std::vector<at::Tensor> losses_, auxiliary_losses_;  // weighted
  double count_ = 0;
  std::vector<Tensors> results_;
};

}  // namespace braid::modules
