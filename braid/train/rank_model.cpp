// Cuts the model's list of blocks at stage borders.
#include "braid/train/rank_model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/layout/frozen.h"
#include "braid/layout/parameters.h"
#include "braid/layout/state_blocks.h"
#include "braid/model/families.h"
#include "braid/spec/activation_blocks.h"
#include "braid/spec/parameter_groups.h"
#include "braid/spec/partition.h"
#include "braid/sync/copies_sink.h"
#include "braid/train/compute_device.h"
#include "braid/train/disk_spaces.h"

namespace braid::train {
namespace {

std::vector<nn::ModelPiece> pieces_of_stage(const RunSpec& spec, int stage, int num_stages) {
  const std::vector<int> units = spec::stage_units(spec, num_stages);
  return nn::pieces_of(spec.model, units[stage], units[stage + 1]);
}

// Refuses blocks of a program where ranks split the tokens.
void require_own_blocks(const RunSpec& spec, const nn::ModelMaker& maker) {
  if (maker.block == nn::model_maker(spec.model).block) return;
  constexpr const char* kWhy = ": a program's own blocks are not known to work on a part of the tokens";
  std::vector<Problem> problems;
  if (spec.mesh.sequence_parallel)
    problems.push_back({"mesh.sequence_parallel", "true", cat("must be false", kWhy), "false"});
  if (spec.mesh.context > 1) problems.push_back({"mesh.context", cat(spec.mesh.context), cat("must be 1", kWhy), "1"});
  if (!problems.empty()) throw ConfigError(problems);
}

// Returns the whole model's parameters as this tensor rank holds them.
layout::ModelParams params_of(const RunSpec& spec, const Groups& groups, const nn::ModelMaker& maker) {
  const int rank = groups.at[mesh::Axis::Tensor], ranks = groups.mesh.size(mesh::Axis::Tensor);
  const auto of_rank = [&](int tensor_rank) { return maker.params(spec.model, tensor_rank, ranks); };
  require_own_blocks(spec, maker);
  const std::vector<Problem> problems = layout::state_block_problems(spec, of_rank);
  if (!problems.empty()) throw ConfigError(problems);
  layout::ModelParams params = of_rank(rank);
  if (!spec.mesh.sequence_parallel) return params;
  layout::split_tokens(model::graph_of(spec.model), {rank, ranks, mesh::Axis::Tensor}, params);
  return params;
}

layout::AuxiliarySpec auxiliaries_of(const layout::ModelParams& blocks) {
  layout::AuxiliarySpec all;
  for (const layout::BlockSpec& block : blocks) {
    const layout::AuxiliarySpec& of_block = block.auxiliaries;
    all.losses.insert(all.losses.end(), of_block.losses.begin(), of_block.losses.end());
    all.counts.insert(all.counts.end(), of_block.counts.begin(), of_block.counts.end());
  }
  return all;
}

}  // namespace

optim::ParamOrder param_order(const layout::ModelParams& params) {
  optim::ParamOrder order;
  for (const auto& block : params) {
    for (const auto& param : block.params) {
      if (std::find(order.begin(), order.end(), param.name) == order.end()) order.push_back(param.name);
    }
  }
  return order;
}

ModelLayers model_layers(const layout::ModelParams& params) {
  ModelLayers layers;
  std::set<std::string_view> seen;
  for (const layout::BlockSpec& block : params) {
    for (const layout::ParamSpec& param : block.params) {
      if (seen.insert(param.name).second) layers.of_param.push_back(static_cast<int>(layers.names.size()));
    }
    layers.names.push_back(block.name);
  }
  return layers;
}

// Tensors on disk are sharded in the same way, if only in one part: they are moved unit by unit.
param::Sharding sharding_of(const RunSpec& spec, const Groups& groups) {
  param::Sharding sharding;
  if (const Communicator* const shards = groups.shards()) {
    sharding = {static_cast<param::Sharded>(spec.sync.zero), shards->rank(), shards->size()};
  }
  if (spec.memory.gradients == Tier::Disk) sharding.what = std::max(sharding.what, param::Sharded::Gradients);
  if (spec.memory.parameters == Tier::Disk) sharding.what = param::Sharded::Parameters;
  return sharding;
}

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return at::kDouble;
    case DType::BFloat16:
      return at::kBFloat16;
    case DType::Float16:
      return at::kHalf;
    case DType::Float32:
      break;
  }
  return at::kFloat;
}

std::vector<int64_t> hidden_sizes(const RunSpec& spec) {
  const int parts = spec.mesh.context * (spec.mesh.sequence_parallel ? spec.mesh.tensor : 1);
  return {spec.train.microbatch, spec.model.context / parts, spec.model.width};
}

layout::TensorParts tensor_parts(const RunSpec& spec) {
  if (layout::sums_of(spec.train) == layout::TensorSums::Joined) return {};
  const int of_rank = std::max(1, spec.train.tensor_parts / spec.mesh.tensor);
  return {of_rank, spec.mesh.sequence_parallel ? of_rank : spec.train.tensor_parts};
}

RankModel::RankModel(const RunSpec& spec, const Groups& groups, const nn::ModelMaker& maker)
    : groups_(groups), maker_(maker) {
  layout::ModelParams all = params_of(spec, groups, maker);
  layout::mark_frozen(all, [&](const std::string& name) { return spec::is_frozen(spec.optimizer, name); });
  order_ = param_order(all);
  layers_ = model_layers(all);
  auxiliaries_ = auxiliaries_of(all);
  std::vector<layout::BlockSpec> mine;
  for (const int stage : groups.layout.stages_of(groups.at[mesh::Axis::Pipe])) {
    for (const nn::ModelPiece& piece : pieces_of_stage(spec, stage, groups.layout.num_stages())) {
      mine.push_back(nn::params_of(piece, all));
      stage_of_block_.push_back(stage);
      is_trained_.push_back(std::ranges::any_of(
          mine.back().params, [](const layout::ParamSpec& param) { return param.trained == model::Trained::Yes; }));
    }
  }
  const auto data = at::TensorOptions(scalar_type(spec.train.dtype)).device(compute_device(spec));
  const int num_microbatches = groups.layout.num_microbatches(groups.at[mesh::Axis::Pipe]);
  store_ = std::make_unique<param::ParamStore>(
      mine, param::StoreOptions{spec.train.reduction, data, spec.train.seed, sharding_of(spec, groups),
                                disk_space(spec, num_microbatches)});
  make_sink();
  activations_ = swap_space(spec);
  if (spec.mesh.context > 1) context_ = ContextRanks(spec, groups.over({mesh::Axis::Context}));
  for (const int stage : groups.layout.stages_of(groups.at[mesh::Axis::Pipe])) build(spec, stage);
}

std::vector<std::string> RankModel::disk_notes() const {
  if (param::DiskTensors* const tensors = store_->disk()) return tensors->disk().notes();
  return activations_ ? activations_->notes() : std::vector<std::string>();
}

int64_t RankModel::bytes_moved_on_disk() const {
  int64_t bytes = activations_ ? activations_->bytes_read() + activations_->bytes_written() : 0;
  if (param::DiskTensors* const tensors = store_->disk()) {
    bytes += tensors->disk().bytes_read() + tensors->disk().bytes_written();
  }
  return bytes;
}

void RankModel::make_sink() {
  if (store_->shards_gradients()) {
    auto sink = std::make_unique<param::UnitSink>(*store_);
    unit_sink_ = sink.get();
    sink_ = std::move(sink);
  } else {
    sink_ =
        store_->reduction() == Reduction::Reproducible ? param::tree_sink(*store_) : param::accumulating_sink(*store_);
  }
  const int rank = groups_.at[mesh::Axis::Tensor];
  sync::CopyHolders holders;
  for (const int copies : sync::numbers_of_copies(*store_)) {
    holders[copies] = groups_.over({mesh::Axis::Tensor}).split(rank / copies, rank, cat(copies, " copies"));
  }
  if (!holders.empty()) sink_ = std::make_unique<sync::CopiesSink>(std::move(sink_), std::move(holders));
}

void RankModel::hold_stage(int stage) const {
  for (size_t block = 0; hooks_.before && block < stage_of_block_.size(); ++block) {
    if (stage_of_block_[block] == stage) hooks_.before(static_cast<int>(block), param::Phase::Forward);
  }
}

void RankModel::let_stage_go(int stage) const {
  for (size_t block = 0; hooks_.after && block < stage_of_block_.size(); ++block) {
    if (stage_of_block_[block] == stage) hooks_.after(static_cast<int>(block), param::Phase::Forward);
  }
}

void RankModel::set_hooks(const nn::BlockHooks& hooks) {
  hooks_ = hooks;
  for (auto& [index, stage] : stages_) {
    const int first = first_block(index);
    stage.segments->set_hooks({[hooks, first](int block, param::Phase phase) { hooks.before(first + block, phase); },
                               [hooks, first](int block, param::Phase phase) { hooks.after(first + block, phase); }});
  }
}

void RankModel::build(const RunSpec& spec, int index) {
  Stage& stage = stages_[index];
  stage.weight_grads = std::make_unique<param::WeightGradQueue>(*sink_, tensor_parts(spec));
  const spec::Recompute policy = spec::stage_recompute(spec.memory, index);
  const nn::RankContext rank{groups_.over({mesh::Axis::Tensor}), *stage.weight_grads, nn::kept_by_layers(policy),
                             layout::sequence_of(spec.mesh),     context_.group(),    maker_.observer};
  for (const nn::ModelPiece& piece : pieces_of_stage(spec, index, groups_.layout.num_stages())) {
    stage.blocks.push_back(maker_.block(spec.model, piece, *store_, rank));
  }
  const int embedding = is_first(index) ? 1 : 0, head = is_last(index) ? 1 : 0;
  const int middle = static_cast<int>(stage.blocks.size()) - embedding - head;
  const int on_tier = activations_ ? spec::blocks_on_tier(spec.memory, index, middle) : 0;
  auto plan = nn::plan_segments(policy, {embedding, middle, head});
  if (store_->shards_parameters() || on_tier > 0) plan = nn::block_by_block(plan);
  const int last = last_in_backward(index);
  stage.segments = std::make_unique<nn::Segments>(stage.blocks, nn::cut_before(plan, last), *stage.weight_grads, last);
  if (activations_) stage.segments->keep_in(activations_, on_tier > 0 ? embedding + on_tier : 0);
}

int RankModel::first_block(int stage) const {
  return static_cast<int>(std::ranges::find(stage_of_block_, stage) - stage_of_block_.begin());
}

int RankModel::last_in_backward(int stage) const {
  const int first = first_block(stage);
  const auto blocks = std::span(stage_of_block_).subspan(first);
  const int count = static_cast<int>(std::ranges::count(blocks, stage));
  const auto trained = std::ranges::find(is_trained_.begin() + first, is_trained_.begin() + first + count, 1);
  const int before = static_cast<int>(trained - is_trained_.begin()) - first;
  const bool is_whole = groups_.layout.backward(stage) == StageBackward::Whole;
  check(is_whole == (before < count), "a schedule has the weight passes of stages with trained parameters");
  if (stage == 0) return before;
  return groups_.layout.backward(stage - 1) == StageBackward::Nothing ? before : nn::kToInput;
}

std::vector<char> RankModel::runs_backward() const {
  std::vector<char> runs;
  for (size_t block = 0; block < stage_of_block_.size(); ++block) {
    const int stage = stage_of_block_[block];
    runs.push_back(static_cast<int>(block) - first_block(stage) >= last_in_backward(stage) ? 1 : 0);
  }
  return runs;
}

bool RankModel::counts(const param::Parameter& param) const {
  mesh::Coords in_replica = groups_.at;
  in_replica[mesh::Axis::Data] = 0;
  return groups_.first_of_pair() && param.local_uses.front() == 0 && mesh::counts_once(param.placement, in_replica);
}

}  // namespace braid::train
