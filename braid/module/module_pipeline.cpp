// Combines the parts of a pipeline: plan, stages, shapes, executor, runtime, reduction.
#include "braid/module/module_pipeline.h"

#include <ATen/ops/cat.h>
#include <torch/optim/optimizer.h>

#include <list>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/module/layer_executor.h"
#include "braid/module/layer_facts.h"
#include "braid/module/model_part.h"
#include "braid/module/pipeline_checks.h"
#include "braid/module/shape_trace.h"
#include "braid/module/stage_replica.h"
#include "braid/module/torch_state.h"
#include "braid/pipe/schedule_runtime.h"
#include "braid/schedule/passes.h"

namespace braid {
namespace {

Tensors joined_rows(const std::vector<Tensors>& parts) {
  Tensors result;
  for (size_t i = 0; !parts.empty() && i < parts[0].size(); ++i) {
    Tensors column;
    for (const auto& part : parts) column.push_back(part.at(i));
    result.push_back(at::cat(column));
  }
  return result;
}

}  // namespace

class ModulePipeline::State {
 public:
  State(LayerList layers, Communicator& pipe, Options options)
      : layers_(std::move(layers)),
        pipe_(pipe),
        options_(std::move(options)),
        schedule_(schedule::with_comms(schedule::with_grad_sync(options_.schedule))),
        plan_(modules::checked_plan(layers_, schedule_, options_, pipe)),
        claim_(layers_, own_plans()),
        stages_(own_stages()),
        own_data_(options_.data ? nullptr : pipe.split(pipe.rank(), 0, "data")),
        data_(options_.data ? *options_.data : *own_data_),
        replica_(layers_, stages_, options_.memory.has_disk() ? &data_ : options_.data, options_.sync, options_.memory),
        book_(stages_, schedule_, pipe),
        counted_(agreed_to_count()),
        executor_(stages_, schedule_.num_stages, options_.loss, options_.activations),
        runtime_(schedule_, pipe, executor_) {
    executor_.before_backward = [this](int stage, int micro) { replica_.begin_backward(stage, micro); };
    executor_.after_backward = [this] { replica_.end_backward(); };
    book_.run_traces = [this](int num_traces, const std::function<void()>& trace) {
      replica_.run_traces(num_traces, trace);
    };
    executor_.on_reduce = [this](int stage) { replica_.reduce(stage); };
  }

  std::optional<double> step(const Tensors& inputs, const Tensors& targets) {
    const auto [split, shapes] = book_.open(inputs, modules::ForwardPurpose::Training);
    const int64_t number = num_steps_;
    const int64_t first_micro = int64_t{data_.rank()} * split.num_microbatches;
    modules::ModuleStep step{{modules::ForwardPurpose::Training, number, first_micro}, split, inputs, targets};
    step.shapes = shapes;
    Divisor divisor;
    const bool contributes = require_mean_of_rows(*shapes);
    if (has_last_stage()) require_targets(targets, split);
    if (has_last_stage() || contributes) divisor = weigh(step, number);
    executor_.begin_step(std::move(step));
    replica_.begin_step({number, split.num_microbatches, counted_});
    Divisor found;
    try {
      spans_ = runtime_.run_step();
      found = has_last_stage() && counted_ ? divisor_of(executor_.count(), number) : divisor;
      replica_.finish(correction(divisor, found));
    } catch (...) {
      replica_.give_up();
      throw;
    }
    ++num_steps_;
    for (const auto& [number, stage] : stages_) stage.listeners().end_step(data_);
    replica_.end_step(number);
    auxiliary_loss_ =
        contributes ? comm::agree(data_, "auxiliary loss", executor_.auxiliary_loss() * divisor.own, ReduceOp::Sum) /
                          divisor.all
                    : 0;
    if (!has_last_stage()) return std::nullopt;
    return comm::agree(data_, "loss", executor_.loss() * divisor.own, ReduceOp::Sum) / found.all;
  }
  modules::StageReplica& replica() { return replica_; }

  Tensors forward(const Tensors& inputs) {
    std::list<modules::EvaluationMode> modes;
    for (const auto& [number, stage] : stages_) {
      for (int index = stage.plan().first; index < stage.plan().last; ++index) modes.emplace_back(layers_[index]);
    }
    const auto [split, shapes] = book_.open(inputs, modules::ForwardPurpose::Evaluation);
    modules::ModuleStep step{{modules::ForwardPurpose::Evaluation}, split, inputs, {}};
    step.shapes = shapes;
    executor_.begin_step(std::move(step));
    const Schedule schedule = schedule::forward_only(schedule_, split.num_microbatches);
    pipe::ScheduleRuntime(schedule, pipe_, executor_).run_step();
    return has_last_stage() ? joined_rows(executor_.take_results()) : Tensors();
  }

  modules::ModelPart part() {
    Communicator* const world = !options_.world && data_.size() == 1 ? &pipe_ : options_.world;
    if (!world) {
      throw ConfigError(
          {{"world", "", "must be given to save and load replicas: the ranks of `pipe` and `data` together", ""}});
    }
    replica_.between_steps();
    return {layers_, replica_.layers(), replica_.synced(), options_.sync, num_steps_, *world};
  }
  void go_on_after(int64_t steps) {
    replica_.note_written();
    num_steps_ = steps;
  }
  void with_whole_parameters(const std::function<void()>& body) { replica_.with_whole_parameters(body); }

  const Tensors& parameters() const { return replica_.parameters(); }
  const std::vector<schedule::Span>& spans() const { return spans_; }
  int64_t bytes_sent() const { return replica_.bytes_sent(); }
  double auxiliary_loss() const { return auxiliary_loss_; }
  void retrace() {
    book_.forget();
    replica_.follow();
  }

 private:
  bool has_last_stage() const { return stages_.contains(schedule_.num_stages - 1); }

  std::vector<modules::StagePlan> own_plans() const {
    std::vector<modules::StagePlan> plans;
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      if (schedule_.stage_rank[stage] == pipe_.rank()) plans.push_back(plan_[stage]);
    }
    return plans;
  }
  std::map<int, modules::LayerStage> own_stages() const {
    std::map<int, modules::LayerStage> stages;
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      if (schedule_.stage_rank[stage] == pipe_.rank())
        stages.try_emplace(stage, layers_, plan_[stage], stage, pipe_.rank_kind());
    }
    return stages;
  }
  // Returns true if layers of this rank contribute auxiliary losses. These need a loss that is a mean over rows. A
  // counted loss's gradients are multiplied by a factor after the last backward, which would be wrong for auxiliary
  // losses.
  bool require_mean_of_rows(const std::vector<std::map<int, modules::StageShapes>>& shapes) const {
    bool contributes = false;
    for (const auto& of_kind : shapes) {
      for (const auto& [stage, found] : of_kind) contributes |= found.contributes;
    }
    if (!contributes || !counted_) return contributes;
    throw ConfigError({{"loss", "is counted",
                        "must be one number, its mean over a microbatch's rows, where layers contribute auxiliary "
                        "losses: wrap it in a function that returns a tensor",
                        ""}});
  }
  void require_targets(const Tensors& targets, const modules::MinibatchSplit& split) const {
    std::vector<Problem> problems;
    if (!options_.loss) problems.push_back({"loss", "", "must be given to train", ""});
    for (size_t i = 0; i < targets.size(); ++i) {
      const bool fits = targets[i].defined() && targets[i].dim() > 0 && targets[i].size(0) == split.rows;
      if (!fits)
        problems.push_back({cat("targets[", i, "]"), "", cat("must have a row per input (", split.rows, ")"), ""});
    }
    if (!problems.empty()) throw ConfigError(std::move(problems));
  }
  // The divisors of a step's sums: `own` for gradients, `all` for the loss of all data ranks. They differ only if
  // replicas train independently. With LossKind::Sum both are 1.
  struct Divisor {
    double own = 1, all = 1;
  };
  // Returns the divisors of this rank's minibatch, which has `count` rows or counted elements.
  Divisor divisor_of(double count, int64_t number) const {
    const double all = comm::agree(data_, "number of values", count, ReduceOp::Sum);
    return {replica_.apart(number) ? count : all, all};
  }
  // Sets the weights of the microbatches' losses in the loss that step `number` minimises. The count of a counted loss
  // is unknown before the last forward, so its sums are divided by the number of targets, which often equals the count.
  Divisor weigh(modules::ModuleStep& step, int64_t number) const {
    const modules::MinibatchSplit& split = step.split;
    step.weights.assign(split.num_microbatches, 1.0);
    if (options_.loss_kind == LossKind::Sum) return {};
    const bool guess = counted_ && !step.targets.empty();
    const Divisor divisor = divisor_of(static_cast<double>(guess ? step.targets[0].numel() : split.rows), number);
    for (int micro = 0; micro < split.num_microbatches; ++micro) {
      step.weights[micro] = (counted_ ? 1.0 : static_cast<double>(split.size(micro))) / divisor.own;
    }
    return divisor;
  }
  // Returns the factor by which gradients must still be multiplied, the same on every rank of the pipe. Collective over
  // the pipe if the loss is counted. The factor is 1 if the count is 0, because gradients are zero then.
  double correction(const Divisor& divisor, const Divisor& found) const {
    if (!counted_) return 1;
    const double factor = found.own > 0 ? divisor.own / found.own : 1;
    return comm::broadcast(pipe_, "factor of gradients", factor, schedule_.stage_rank.back());
  }
  // Collective over the pipe. Returns true if gradients lack a factor until the last microbatch has been counted. The
  // rank of the last stage decides, because it has the loss.
  bool agreed_to_count() const {
    const bool counts = options_.loss.counted() && options_.loss_kind == LossKind::Mean;
    return comm::broadcast(pipe_, "loss counts its values", counts, schedule_.stage_rank.back());
  }

  const LayerList layers_;
  Communicator& pipe_;
  const Options options_;
  const Schedule schedule_;
  const std::vector<modules::StagePlan> plan_;
  const modules::LayerClaim claim_;
  std::map<int, modules::LayerStage> stages_;
  const std::unique_ptr<Communicator> own_data_;
  Communicator& data_;
  modules::StageReplica replica_;
  modules::ShapeBook book_;
  const bool counted_;
  modules::LayerExecutor executor_;
  pipe::ScheduleRuntime runtime_;
  std::vector<schedule::Span> spans_;
  double auxiliary_loss_ = 0;
  int64_t num_steps_ = options_.first_step;
};

ModulePipeline::ModulePipeline(LayerList layers, Communicator& pipe, Options options)
    : state_(std::make_unique<State>(std::move(layers), pipe, std::move(options))) {}
ModulePipeline::~ModulePipeline() = default;

std::optional<double> ModulePipeline::step(const Tensors& inputs, const Tensors& targets) {
  return state_->step(inputs, targets);
}
Tensors ModulePipeline::forward(const Tensors& inputs) { return state_->forward(inputs); }
void ModulePipeline::update(const std::function<void()>& write) {
  modules::StageReplica& replica = state_->replica();
  if (replica.disk()) {
    throw ConfigError({{"update", "an optimizer in memory",
                        "must be update(OptimizerOnDisk&), which updates parameters and gradients on disk", ""}});
  }
  replica.update(write);
}
void ModulePipeline::update(OptimizerOnDisk& optimizer) {
  modules::StageReplica& replica = state_->replica();
  replica.update([&] { optimizer.step_of({parameters(), replica.disk(), replica.gradient_factors()}); });
}
void ModulePipeline::update(torch::optim::Optimizer& optimizer) {
  modules::require_parameters_of(parameters(), optimizer);
  update([&] { optimizer.step(); });
}
modules::ModelPart ModulePipeline::part() { return state_->part(); }
void ModulePipeline::go_on_after(int64_t steps) { state_->go_on_after(steps); }
void ModulePipeline::with_whole_parameters(const std::function<void()>& body) { state_->with_whole_parameters(body); }
double ModulePipeline::auxiliary_loss() const { return state_->auxiliary_loss(); }
int64_t ModulePipeline::bytes_sent() const { return state_->bytes_sent(); }
const Tensors& ModulePipeline::parameters() const { return state_->parameters(); }
const std::vector<schedule::Span>& ModulePipeline::spans() const { return state_->spans(); }
void ModulePipeline::retrace() { state_->retrace(); }

}  // namespace braid
