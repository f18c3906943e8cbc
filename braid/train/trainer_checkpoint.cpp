// Saves and loads a trainer: the contents of a checkpoint, the order in which they are loaded, and the checks before.

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/train/disk_spaces.h"
#include "braid/train/left_out_states.h"
#include "braid/train/resume.h"
#include "braid/train/saved_states.h"
#include "braid/train/saved_tensors.h"
#include "braid/train/spike_watch.h"
#include "braid/train/trainer.h"

namespace braid::train {

std::vector<ckpt::PlacedTensor> Trainer::tensors() {
  return saved_tensors(model_->params(), optimizer_->states(), *replication_);
}

void Trainer::refuse_if_not_finite() {
  bool finite = true;
  for (const param::OwnedRange& range : model_->params().owned()) {
    finite = finite && std::isfinite(range.master.detach().sum().item<double>());
  }
  if (comm::agree_all(groups_->world, "finite parameters", finite)) return;
  throw RunError(cat("step ", num_steps_, ": a parameter is not finite after the update; it is not saved; ",
                     where_not_finite(*model_)));
}

void Trainer::save(const std::string& directory, const std::string& config_toml) {
  save(config_toml, [&](const ckpt::CheckpointContent& content) {
    refuse_if_not_finite();
    const auto here = on_host(content.tensors);
    ckpt::save_checkpoint(directory, {here, content.info, content.tokenizer_files}, groups_->world);
  });
}

ckpt::SavePlan Trainer::save_plan() {
  ckpt::SavePlan plan = ckpt::plan_save(tensors_to_save(tensors(), replication_->own_prefix()), groups_->world);
  replication_->saved(*optimizer_);  // frees states that were needed only for the plan
  return plan;
}

void Trainer::save(const std::string& config_toml, const std::function<void(const ckpt::CheckpointContent&)>& write) {
  // States on disk are saved through a mapping, which has no checksums, and where an error of the disk is a signal.
  if (param::DiskTensors* const on_disk = model_->params().disk()) on_disk->disk().check_written();
  replication_->meet();
  replication_->fetch_states(*optimizer_);
  ckpt::CheckpointInfo info{num_steps_, config_toml, spec_.data.tokenizer, next_batch() * spec_.train.batch};
  info.data = origin_.sources;
  info.tokenizer_hash = origin_.tokenizer;
  info.counters = spikes_.counters();
  if (passed_over_ > 0) info.counters[kBatchesPassedOver] = static_cast<double>(passed_over_);
  if (loss_scaler_) {
    const optim::LossScaler::State& state = loss_scaler_->state();
    info.counters["loss_scale"] = state.scale;
    info.counters["finite_steps"] = static_cast<double>(state.num_finite);
  }
  if (optimizer_->num_steps() != num_steps_) {
    info.counters["optimizer_steps"] = static_cast<double>(optimizer_->num_steps());
  }
  if (owes_evaluation) info.counters["owes_evaluation"] = 1;
  if (replication_->replicas() == sync::Replicas::Apart)
    info.counters[kReplicasApart] = groups_->mesh.size(mesh::Axis::Data);
  const auto saved = tensors_to_save(tensors(), replication_->own_prefix());
  write({saved, info, &origin_.tokenizer_files});
  replication_->saved(*optimizer_);
}

// A checkpoint of another precision has no loss scale. Then the configured one stays.
void Trainer::load_counters(const ckpt::CheckpointInfo& info) {
  const auto counter = [&](const char* name, double otherwise) {
    const auto found = info.counters.find(name);
    return found == info.counters.end() ? otherwise : found->second;
  };
  num_steps_ = info.step;
  passed_over_ = static_cast<int64_t>(counter(kBatchesPassedOver, 0));
  spikes_.restore(info.counters);
  owes_evaluation = counter("owes_evaluation", 0) != 0;
  optimizer_->set_num_steps(static_cast<int64_t>(counter("optimizer_steps", static_cast<double>(info.step))));
  if (!loss_scaler_) return;
  const auto num_finite = static_cast<int64_t>(counter("finite_steps", 0));
  loss_scaler_->set_state({counter("loss_scale", loss_scaler_->scale()), num_finite});
}

void Trainer::load(const std::string& directory) {
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(directory);
  auto found = resume_problems({spec_, origin_}, info, directory);
  if (!found.empty()) throw ConfigError(std::move(found));
  if (info.data.empty() && !origin_.sources.empty()) {
    choices_.push_back(cat("the data as they are: ", directory, " does not say what it was trained on"));
  }
  const CheckpointSource from{directory, disk_space(spec_, 1)};
  const ckpt::Manifest manifest = ckpt::read_manifest(ckpt::found_directory(directory));
  const auto states = states_to_read(optimizer_->states(), manifest, from.conversions);
  refuse_parts_of_blocks(states, model_->params(), groups_->world);
  auto places = saved_tensors(model_->params(), states, *replication_);
  const std::string left_out = leave_out_reducer_state(places, spec_, info, directory);
  if (!left_out.empty()) choices_.push_back(left_out);
  const std::vector<std::string> released = leave_out_states_of_frozen(places, info, directory);
  if (!released.empty()) {
    choices_.push_back(cat("the optimizer's states of ", counted(released.size(), "parameter"),
                           " begin at zero: ", directory, " froze ", joined(released)));
  }
  load_tensors(from, places, *optimizer_, groups_->world);
  take_states(states, optimizer_->states());
  model_->params().round_masters();
  const bool apart = info.counters.contains(kReplicasApart);
  replication_->resume(apart ? sync::Replicas::Apart : sync::Replicas::Alike, released);
  load_counters(info);
  replication_->restored(*optimizer_);
}

}  // namespace braid::train
