// Executes the actions of any schedule on user modules.
//
// User modules have no split between input and weight gradients: input_grad runs the whole backward, and weight_grad
// does nothing. So a zero-bubble schedule gives the right gradients, but the bubble of 1F1B.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "braid/module/activations_on_disk.h"
#include "braid/module/loss_function.h"
#include "braid/module/minibatch_split.h"
#include "braid/module/shape_trace.h"
#include "braid/pipe/stage_executor.h"

namespace braid::modules {

// The work of one step.
struct ModuleStep {
  MicrobatchContext context;  // context of the step's first microbatch
  MinibatchSplit split;
  Tensors inputs, targets;  // tensors of the whole minibatch; used by the first and the last stage
  // By microbatch: the factor of its losses in the step's loss. Empty if this rank's stages have no losses.
  std::vector<double> weights;
  const std::vector<std::map<int, StageShapes>>* shapes = nullptr;  // by kind of microbatch
};

class LayerExecutor final : public pipe::StageExecutor {
 public:
  // `stages` are this rank's stages by number, of `num_stages` in all. They outlive this, as do `activations` unless
  // null.
  LayerExecutor(const std::map<int, LayerStage>& stages, int num_stages, LossFunction loss,
                const ActivationsOnDisk* activations);

  void begin_step(ModuleStep step);
  // Called before and after the backward of a microbatch on a stage. May be empty.
  std::function<void(int stage, int micro)> before_backward;
  std::function<void()> after_backward;
  // Called after the stage's last backward of the step. May be empty.
  std::function<void(int stage)> on_reduce;
  // The results of a step, on the rank of the last stage.
  double loss() const;                     // sum of the microbatches' weighted losses, without auxiliary ones
  double count() const { return count_; }  // sum of the counts of a counted loss
  std::vector<Tensors> take_results();     // outputs of an evaluation, by microbatch
  // Returns the sum of the weighted auxiliary losses of this rank's stages over the step's microbatches.
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
  // The tensors of one microbatch on one stage, from forward to the end of the backward.
  struct InFlight {
    Tensors inputs, outputs, output_gradients, input_gradients;
    at::Tensor auxiliary;  // weighted auxiliary loss; undefined: none
  };
  bool trains() const { return step_.context.purpose == ForwardPurpose::Training; }
  const StageShapes& shapes(int stage, int micro) const { return step_.shapes->at(step_.split.kind(micro)).at(stage); }
  Tensors part(const Tensors& whole, int micro) const;
  std::unique_ptr<ActivationsOnDisk::Forward> saving(int stage, const InFlight& flight) const;
  Tensors run_stage(int stage, int micro, InFlight& flight);
  void take_loss(InFlight& flight, int micro, const Tensors& outputs);
  void check_outputs(int stage, int micro, const Tensors& outputs) const;

  const std::map<int, LayerStage>& stages_;
  int last_stage_;
  LossFunction loss_function_;
  const ActivationsOnDisk* activations_;
  ModuleStep step_;
  std::map<std::pair<int, int>, InFlight> in_flight_;  // by (stage, microbatch)
  std::vector<at::Tensor> losses_, auxiliary_losses_;  // weighted
  double count_ = 0;
  std::vector<Tensors> results_;
};

}  // namespace braid::modules
