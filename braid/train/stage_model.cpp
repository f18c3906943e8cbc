// Cutting the model's list of blocks at stage borders.
#include "braid/train/stage_model.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/nn/model.h"
#include "braid/spec/partition.h"
#include "braid/train/compute_device.h"

namespace braid {
namespace {

std::vector<ModelPiece> pieces_of_stage(const RunSpec& spec, int stage, int num_stages) {
  const std::vector<int> units = stage_units(spec, num_stages);
  return pieces_of(units[stage], units[stage + 1], spec.model.layers);
}

}  // namespace

ParamOrder param_order(const ModelParams& params) {
  ParamOrder order;
  for (const auto& block : params) {
    for (const auto& param : block.params) {
      if (std::find(order.begin(), order.end(), param.name) == order.end()) order.push_back(param.name);
    }
  }
  return order;
}

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "float64") return at::kDouble;
  if (dtype == "bfloat16") return at::kBFloat16;
  if (dtype == "float16") return at::kHalf;
  check(dtype == "float32", "the spec's dtype is float32, float64, bfloat16 or float16");
  return at::kFloat;
}

StageModel::StageModel(const RunSpec& spec, const RankGroups& groups) : groups_(groups) {
  const ModelParams all = model_params(spec.model, groups.tensor->rank(), groups.tensor->size());
  order_ = param_order(all);
  const bool reproducible = spec.train.reduction == "reproducible";
  std::vector<BlockSpec> mine;
  for (const int stage : groups.layout.stages_of(groups.at[Axis::Pipe])) {
    for (const ModelPiece& piece : pieces_of_stage(spec, stage, groups.layout.num_stages())) {
      mine.push_back(params_of(piece, all));
    }
  }
  store_ = std::make_unique<ParamStore>(mine, reproducible ? Reduction::Reproducible : Reduction::Fast,
                                        at::TensorOptions(scalar_type(spec.train.dtype)).device(compute_device(spec)),
                                        spec.train.seed);
  sink_ = reproducible ? tree_sink(*store_) : accumulating_sink(*store_);
  for (const int stage : groups.layout.stages_of(groups.at[Axis::Pipe])) build(spec, stage);
}

void StageModel::build(const RunSpec& spec, int index) {
  Stage& stage = stages_[index];
  stage.weight_grads = std::make_unique<WeightGradQueue>(*sink_);
  const Recompute policy = stage_recompute(spec.memory, index);
  const RankContext rank{*groups_.tensor, *stage.weight_grads, generator_, kept_by_layers(policy)};
  for (const ModelPiece& piece : pieces_of_stage(spec, index, groups_.layout.num_stages())) {
    stage.blocks.push_back(model_block(spec.model, piece, *store_, rank));
  }
  const int embedding = is_first(index) ? 1 : 0, head = is_last(index) ? 1 : 0;
  const int middle = static_cast<int>(stage.blocks.size()) - embedding - head;
  const auto plan = plan_segments(policy, {embedding, middle, head});
  stage.segments = std::make_unique<Segments>(stage.blocks, plan, *stage.weight_grads);
}

bool StageModel::counts(const Parameter& param) const {
  Coords in_replica = groups_.at;
  in_replica[Axis::Data] = 0;
  return groups_.first_of_pair() && param.local_uses.front() == 0 && counts_once(param.placement, in_replica);
}

}  // namespace braid
