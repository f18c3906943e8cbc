// Executes the ops of a schedule on a RankModel. Holds the tensors that travel between stages, by microbatch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/param/weight_versions.h"
#include "braid/pipe/stage_executor.h"
#include "braid/schedule/version_plan.h"
#include "braid/train/batch_source.h"
#include "braid/train/rank_model.h"
#include "braid/train/recorded_microbatches.h"
#include "braid/train/step_report.h"

namespace braid::train {

enum class ExecutorMode { Training, Evaluation };

struct ExecutorOptions {
  ExecutorMode mode = ExecutorMode::Training;
  schedule::VersionPlan versions;  // of the schedule that will run
  int64_t sequences = 0;           // evaluation: number of sequences that count, from the first one of step 0
};

class BlockExecutor final : public pipe::StageExecutor {
 public:
  // `model` and `batches` outlive this. In training under an asynchronous plan, the forward and backward of a
  // microbatch on a stage use the version of the weights that the plan assigns to it.
  BlockExecutor(const RunSpec& spec, RankModel& model, const BatchSource& batches, ExecutorOptions options);

  // Called before each step. The gradients will be those of `loss_scale` times the step's mean loss.
  void begin_step(int64_t step, double loss_scale = 1);
  // Called by update() on a new version of the weights. Makes update number `update` of the step in place.
  std::function<void(int update)> on_update;
  // Called by reduce_grad() once it has been called for all of the rank's stages that have weight gradients.
  std::function<void()> on_reduce;
  // From now on microbatches are recorded and replayed (recorded_microbatches.h): forward() also computes the
  // gradients, and the backward that follows does nothing.
  // REQUIRES: training, a pipeline of one stage, an accumulating sink, and blocks without auxiliary losses or counts.
  void record_with(device::MakeGraph make);
  RecordedMicrobatches* recorded() { return recorded_.get(); }  // null before record_with
  // Returns the last step's losses by microbatch; 0 for microbatches whose last stage ran on another rank. Empty if
  // this rank does not hold the last stage. In training, a loss is the mean over the microbatch's sequences. In
  // evaluation, it is the sum over the sequences that count, which does not depend on the batch. Waits for the device.
  std::vector<double> losses() const;
  // Returns the auxiliary losses and counts that the blocks of this rank's stages contributed in the last training
  // step. They are zero on all tensor ranks but the first, since tensor ranks have the same ones. Waits for the device.
  AuxiliaryNumbers auxiliaries() const { return auxiliaries_.numbers(); }
  // Returns the sum of BatchSource::hash over this rank's microbatches of the last training step.
  uint64_t sample_hash() const { return sample_hash_; }

  void forward(int stage, int micro) override;
  void full_backward(int stage, int micro) override;
  void input_grad(int stage, int micro) override;
  void weight_grad(int stage, int micro) override;
  void unshard(int stage) override { model_.hold_stage(stage); }
  void reshard(int stage) override { model_.let_stage_go(stage); }
  void recompute(int stage, int micro) override;
  void reduce_grad(int stage) override;
  void update(int stage, int micro) override;
  Tensors outputs(int stage, int micro) override;
  Tensors input_gradients(int stage, int micro) override;
  Tensors input_buffers(int stage, int micro) override;
  Tensors output_gradient_buffers(int stage, int micro) override;
  void give_inputs(int stage, int micro, Tensors tensors) override;
  void give_output_gradients(int stage, int micro, Tensors tensors) override;

 private:
  // The state of one microbatch on one stage, from its forward to the end of its input-gradient pass.
  struct InFlight {
    nn::Passage passage;
    at::Tensor input;   // held until forward
    at::Tensor output;  // detached; held until outputs() takes it; on the last stage the loss
    at::Tensor output_gradient;
  };
  using Place = std::pair<int, int>;  // stage, microbatch
  at::Tensor activation_buffer() const;
  nn::Microbatch read(int stage, int micro) const;
  nn::Microbatch placed(nn::Microbatch read) const;
  void evaluate_last(int stage, int micro);
  int local_micro(int stage, int micro) const;
  double loss_gradient(int micro) const;
  void use_weights_of(int stage, int micro);
  void backward(int stage, int micro, nn::WeightPass weights);
  bool replays() const { return recorded_ && recorded_->replays(); }

  RankModel& model_;
  const BatchSource& batches_;
  schedule::VersionPlan plan_;
  ExecutorMode mode_;
  int64_t sequences_;
  std::unique_ptr<param::WeightVersions> versions_;  // null under a synchronous plan
  std::vector<int64_t> activation_shape_;
  int64_t vocab_;
  int64_t step_ = 0;
  uint64_t sample_hash_ = 0;
  double loss_scale_ = 1;
  int64_t num_reduced_ = 0;  // stages whose reduce_grad() was called in this step
  std::map<Place, InFlight> in_flight_;
  std::map<Place, at::Tensor> input_gradients_;  // held from the backward until input_gradients() takes it
  at::Tensor losses_m_;                          // float64, on the model's device; undefined without the last stage
  StepAuxiliaries auxiliaries_;
  std::unique_ptr<RecordedMicrobatches> recorded_;
};

}  // namespace braid::train
