// A parameter's gradient is complete when the last backward of its last stage has added to it, or when that backward
// ends without reaching the parameter. The order of these events may differ between data ranks.
#include "braid/module/stage_replica.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <list>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/module/model_part.h"
#include "braid/module/module_changes.h"

namespace braid::modules {
namespace {

LayerList layers_of(const LayerList& layers, const std::map<int, LayerStage>& stages) {
  std::vector<int> numbers;
  for (const auto& [number, stage] : stages) {
    for (int index = stage.plan().first; index < stage.plan().last; ++index) numbers.push_back(index);
  }
  return layers.subset(numbers);
}

Tensors distinct_parameters(const std::map<int, LayerStage>& stages) {
  Tensors all;
  std::set<const void*> seen;
  for (const auto& [number, stage] : stages) {
    for (const auto& parameter : stage.parameters()) {
      if (seen.insert(parameter.unsafeGetTensorImpl()).second) all.push_back(parameter);
    }
  }
  return all;
}

}  // namespace

StageReplica::StageReplica(const LayerList& layers, std::map<int, LayerStage>& stages, Communicator* data,
                           const SyncSpec& sync, const ModelMemory& memory)
    : stages_(stages),
      data_(data),
      sync_(sync),
      memory_(memory),
      layers_(layers_of(layers, stages)),
      parameters_(distinct_parameters(stages)) {
  if (data_) replicate();
}

// Values of frozen parameters that are released now may have been loaded on one rank only.
void StageReplica::replicate() {
  broadcast_values(layers_, *data_);
  unfinished_ = false;
  synced_.reset();
  frozen_.emplace(layers_);
  const bool trains = std::ranges::any_of(parameters_, [](const at::Tensor& each) { return each.requires_grad(); });
  if (!trains) return;
  SyncedModules::Specs specs{sync_, {}, memory_};
  for (const auto& [number, stage] : stages_) {
    specs.stage_of_layer.insert(specs.stage_of_layer.end(), stage.plan().last - stage.plan().first, number);
  }
  synced_.emplace(layers_, *data_, specs);
  synced_->on_gradient = [this](const param::Parameter& param) { arrived(param); };
  number_uses();
  if (synced_->store().shards_parameters()) gather_layers();
}

// Forwards gather parameters. If data ranks run different numbers of them, all parameters are gathered before.
void StageReplica::run_traces(int num_traces, const std::function<void()>& trace) const {
  std::list<WholeLayer> whole;
  if (gathered_ && data_->size() > 1) {
    const auto most = comm::agree(*data_, "shapes to trace", int64_t{num_traces}, ReduceOp::Max);
    const auto least = comm::agree(*data_, "shapes to trace", int64_t{num_traces}, ReduceOp::Min);
    for (int layer = 0; most != least && layer < layers_.size(); ++layer) {
      whole.emplace_back(synced_->replication(), layer);
    }
  }
  if (num_traces > 0) trace();
}

void StageReplica::gather_layers() {
  gathered_ = std::make_shared<GatheredLayers>(synced_->replication(), layers_.size());
  gathered_->on_done_from = [this](int layer) {
    if (moving_) moving_->end_from(layer);
  };
  int first = 0;
  for (auto& [number, stage] : stages_) {
    stage.run_by(*gathered_, first);
    first_gathered_[number] = first;
    first += stage.plan().last - stage.plan().first;
  }
}

// A layer that has a parameter is a use of it, as in the store.
void StageReplica::number_uses() {
  std::map<const void*, int> numbers;
  for (const at::Tensor& each : synced_->modules().parameters()) {
    numbers.try_emplace(each.unsafeGetTensorImpl(), static_cast<int>(numbers.size()));
  }
  uses_.clear();
  num_stages_of_.assign(numbers.size(), 0);
  std::vector<int> num_uses(numbers.size());
  for (const auto& [number, stage] : stages_) {
    OrderedGradients::Uses& uses = uses_[number];
    for (const auto& parameter : stage.parameters()) {
      const auto found = numbers.find(parameter.unsafeGetTensorImpl());
      if (found != numbers.end()) uses[found->second].push_back(num_uses[found->second]++);
    }
    for (const auto& [place, of_place] : uses) ++num_stages_of_[place];
  }
}

void StageReplica::between_steps() {
  check(!due_, "with sync.zero, local SGD or anything on disk every step() of a pipeline is followed by update()");
  const c10::AutoGradMode no_grad(false);
  if (unfinished_ && !has_sink()) finish_sums();
  follow_changes();
}

// After a step that failed, sums of single microbatches may be under way, in another number on each rank.
void StageReplica::begin_step(const ReplicaStep& step) {
  if (unfinished_ && has_sink()) {
    throw RunError(
        "a step has failed while gradients were sharded or on disk: save or load, and construct the pipeline again");
  }
  between_steps();
  const c10::AutoGradMode no_grad(false);
  set_aside(step.scaled);
  if (!synced_) return;
  for (const auto& [number, stage] : stages_) left_[number] = step.num_microbatches;
  open_ = num_stages_of_;
  ready_.assign(open_.size(), false);
  if (has_sink()) {
    synced_->sink()->begin_step(step.num_microbatches);
    synced_->reset_gradients();
  } else {
    synced_->store().flat_grads().zero_();
    synced_->accumulate_in_store();
  }
  synced_->replication().begin_step(step.number);
}

void StageReplica::follow_changes() {
  if (synced_) {
    synced_->require_followed(layers_);
    synced_->follow();
  } else if (data_) {
    auto problems = unknown_parameters(layers_, {});
    if (!problems.empty()) throw ConfigError(std::move(problems));
  }
  if (frozen_) frozen_->follow(*data_);
}

// Sets earlier gradients aside, because a step that all-reduces or scales gradients must not change them. Those on disk
// are not kept.
void StageReplica::set_aside(bool scaled) {
  set_aside_.clear();
  gradient_factors_.clear();
  if (!synced_ && !scaled) return;
  if (memory_.gradients == Kept::OnDisk) return;
  if (synced_ && !has_sink()) synced_->modules().clear_reset_gradients();
  for (const at::Tensor& each : updated()) {
    const at::Tensor& gradient = each.grad();
    set_aside_.push_back(synced_ && gradient.defined() ? gradient.clone() : gradient);
    if (!synced_) each.mutable_grad().reset();
  }
}

void StageReplica::begin_backward(int stage, int micro) {
  if (gathered_) {
    const StagePlan& plan = stages_.at(stage).plan();
    const int first = first_gathered_.at(stage);
    gathered_->begin_backward_of(first, first + plan.last - plan.first);
  }
  if (has_sink()) moving_.emplace(*synced_, layers_.size(), uses_.at(stage), micro);
  if (!synced_ || --left_.at(stage) > 0) return;
  for (const auto& [place, uses] : uses_.at(stage)) --open_[place];
}

void StageReplica::end_backward() {
  const c10::AutoGradMode no_grad(false);
  if (gathered_) gathered_->end_backward();
  if (!moving_) return;
  moving_->end();
  moving_.reset();
}

void StageReplica::arrived(const param::Parameter& param) {
  if (has_sink()) {
    check(moving_.has_value(), "gradients arrive in the backward of a microbatch");
    return moving_->arrived(param);
  }
  if (open_[param.index] > 0 || ready_[param.index]) return;
  ready_[param.index] = true;
  synced_->replication().ready(param);
}

void StageReplica::reduce(int stage) {
  if (!synced_ || has_sink()) return;
  for (const auto& [place, uses] : uses_.at(stage)) arrived(synced_->store().params()[place]);
}

void StageReplica::finish(double factor) {
  const c10::AutoGradMode no_grad(false);
  if (synced_) {
    synced_->replication().finish();
    synced_->modules().bind_gradients();
  }
  if (memory_.gradients == Kept::OnDisk && factor != 1) gradient_factors_ = {factor};
  for (size_t i = 0; i < set_aside_.size(); ++i) {
    const at::Tensor& before = set_aside_[i];
    at::Tensor& gradient = updated()[i].mutable_grad();
    if (gradient.defined() && factor != 1) gradient.mul_(factor);
    if (!before.defined()) continue;
    if (gradient.defined()) synced_ ? gradient.add_(before) : before.add_(gradient);
    if (!synced_ || !gradient.defined()) gradient = before;
  }
  set_aside_.clear();
}

// Makes the gradients that were set aside .grad again, without copying them into the store, where all-reduces may still
// write.
void StageReplica::give_up() {
  for (size_t i = 0; i < set_aside_.size(); ++i) updated()[i].mutable_grad() = set_aside_[i];
  set_aside_.clear();
  unfinished_ = synced_.has_value();
  moving_.reset();
  if (gathered_) gathered_->give_up();
}

// Ends an abandoned step with the same collectives as any other step, on all data ranks.
void StageReplica::finish_sums() {
  unfinished_ = false;
  for (const param::Parameter& param : synced_->store().params()) {
    if (!ready_[param.index]) synced_->replication().ready(param);
  }
  synced_->replication().finish();
}

// All replicas take rank 0's buffers whenever weights are equal: here after every step, or in update() at the end of a
// period.
void StageReplica::end_step(int64_t step) {
  due_ = data_ && !only_sums();
  if (data_ && !(synced_ && apart(step))) broadcast_buffers(layers_, *data_);
}

void StageReplica::update(const std::function<void()>& write) {
  if (synced_) {
    const c10::AutoGradMode no_grad(false);
    synced_->follow();
  }
  write();
  due_ = false;
  if (!synced_) return;
  const c10::AutoGradMode no_grad(false);
  synced_->replication().updated();
  synced_->modules().note_update();
  const bool averaged = averages() && synced_->replication().replicas() == sync::Replicas::Alike;
  if (averaged) broadcast_buffers(layers_, *data_);
}

void StageReplica::with_whole_parameters(const std::function<void()>& body) {
  std::optional<WholeModel> whole;
  if (data_) whole.emplace(layers_, synced(), *data_);
  body();
}

// Computed from the spec, because a rank without trained parameters has no Replication.
bool StageReplica::apart(int64_t step) const { return data_ && averages() && step >= sync_.period_warmup; }

const Tensors& StageReplica::parameters() const {
  return synced_ && synced_->store().is_sharded() ? updated() : parameters_;
}

void StageReplica::note_written() const {
  if (synced_) synced_->modules().note_written();
}

void StageReplica::follow() {
  if (!data_) return;
  Tensors kept;
  if (synced_) kept = synced_->modules().parameters();
  const bool released = std::ranges::any_of(parameters_, [&](const at::Tensor& parameter) {
    const auto same = [&](const at::Tensor& each) { return each.is_same(parameter); };
    return parameter.requires_grad() && std::ranges::none_of(kept, same);
  });
  if (!released) return;
  if (!only_sums()) {
    const char* const rule = "cannot take in a parameter that is released after the pipeline was made";
    if (memory_.has_disk()) throw ConfigError({{"memory", "on disk", rule, ""}});
    if (sync_.zero > 0) throw ConfigError({{"sync.zero", cat(sync_.zero), rule, "0"}});
    throw ConfigError({{"sync.replication", cat(sync_.replication), rule, "all-reduce"}});
  }
  replicate();
}

}  // namespace braid::modules
