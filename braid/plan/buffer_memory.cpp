// The parameters of blocks, embedding and head, gathered and summed unit by unit.
#include "braid/plan/buffer_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "braid/plan/braid_memory.h"
#include "braid/plan/moved_units.h"

namespace braid::plan {
namespace {

// Returns the parameters that are sharded or offloaded.
ParameterSum in_units(const PlannedRun& run, const StageParameters& parameters) {
  const MemorySpec& tiers = run.spec.memory;
  const bool all = !is_resident(tiers.gradients) || !is_resident(tiers.parameters);
  ParameterSum sum;
  if (all || num_shards(run.spec, run.layout, run.layout.gradient_group) > 1) sum += parameters.shared;
  if (all || num_shards(run.spec, run.layout, run.layout.expert_gradient_group) > 1) sum += parameters.experts;
  return sum;
}

// Returns the bytes of the gradients of earlier microbatches that wait while those of copied key heads are summed.
double summed_copies_bytes(const PlannedRun& run, const RankShare& share) {
  const ModelSpec& model = run.spec.model;
  const bool adds = run.spec.train.reduction == Reduction::Fast && run.layout.microbatches > 1;
  if (run.layout.tensor <= model::num_kv_heads(model) || share.blocks == 0 || !adds) return 0;
  const double gradient = state_bytes(run.spec.train.dtype, run.formulas, {.count = 1}).gradients;
  return gradient * 2 * model::head_width(model) * model.width;
}

double table_of(const PlannedRun& run, const RankShare& share) {
  return std::min(static_cast<double>(run.layout.vocab) * run.spec.model.width / run.layout.tensor, share.ends.count);
}

// Returns the parameters of embedding and head that are used at once.
double end_in_use(const PlannedRun& run, const RankShare& share) {
  const bool two_tables = run.layout.pipe == 1 && run.spec.model.output_weights == OutputWeights::Untied;
  return share.ends.all() - (two_tables ? table_of(run, share) : 0);
}

// Returns the parameters that are gathered while blocks run: those that run together, and those of the next part.
double gathered_by_blocks(const StageLoad& stage, const ParameterSum& block, const ParameterSum& ends) {
  double most = stage.blocks > 1 ? 2 * block.all() : block.all() + (stage.embedding ? ends.all() : 0);
  for (const auto& segment : recomputed_segments(stage.recompute, static_cast<int>(std::ceil(stage.blocks)))) {
    const double next = segment.begin > 0 ? block.all() : stage.embedding ? ends.all() : 0;
    most = std::max(most, segment.segment * block.all() + next);
  }
  return most;
}

// Returns the bytes of the weights that a rank has gathered, in addition to its most activations, and of the last
// block's output, which stays beside the head's input because blocks have graphs of their own.
double gathered_weight_bytes(const PlannedRun& run, const RankShare& share) {
  const ParameterSum block = in_units(run, share.block), ends = in_units(run, {.shared = share.ends});
  const double all = in_units(run, share.parameters).all();
  const double element = state_bytes(run.spec.train.dtype, run.formulas, {.count = 1}).weights;
  if (run.spec.sync.zero_gather == GatherUnit::Stage) {
    return element * std::min(1.0, static_cast<double>(kMostStagesGathered) / run.layout.chunks) * all;
  }
  const ActivationBytes x(run.spec, run.layout);
  double most = 0;
  for (const StageLoad& stage : run.layout.stages) {
    if ((stage.embedding && !share.embedding) || (stage.head && !share.head)) continue;
    const WorkingBytes working = working_bytes_at(run, x, stage);
    const double output = stage.head ? x.hidden : 0;
    const double in_block = working.in_block + output + element * std::min(gathered_by_blocks(stage, block, ends), all);
    const double in_head = working.in_head + element * std::min(block.all() + ends.all(), all);
    most = std::max(most, std::max(in_block, stage.head ? in_head : 0) - std::max(working.in_block, working.in_head));
  }
  return most;
}

}  // namespace

double exchange_buffer_bytes(const PlannedRun& run, const RankShare& share) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const ParameterSum all = in_units(run, share.parameters);
  if (all.all() == 0 || share.blocks == 0) return summed_copies_bytes(run, share);
  const bool moves_gradients = !is_resident(spec.memory.gradients),
             moves_weights = !is_resident(spec.memory.parameters), moves = moves_gradients || moves_weights;
  const bool sums_units = spec.sync.zero >= 2 && spec.train.reduction == Reduction::Fast && !moves_gradients;
  const bool gathers = spec.sync.zero == 3 && !moves_weights;
  const double moved = moves ? moved_unit_bytes(run, share, 0) : 0;
  if (!sums_units && !gathers) return moves ? moved : summed_copies_bytes(run, share);
  const StateBytes bytes = state_bytes(spec.train.dtype, formulas, {.count = 1});
  const ParameterSum block = in_units(run, share.block), ends = in_units(run, {.shared = share.ends});
  const double uses = layout.pipe == 1 ? 2 : 1;  // number of uses of a tied table on one rank
  const double tied = std::min(tied_parameters(spec, layout).count, ends.count);
  const double gradients = std::min(3 * block.count, all.count - ends.count) + ends.count + (uses - 1) * tied;
  return moved + (sums_units ? gradients * bytes.gradients : 0) + (gathers ? gathered_weight_bytes(run, share) : 0);
}

MovedWeights moved_weights(const PlannedRun& run, const RankShare& share, double beside) {
  const MemorySpec& memory = run.spec.memory;
  if (is_resident(memory.parameters) || run.formulas != FormulaSet::Braid || share.blocks == 0) return {};
  const double of_weight = state_bytes(run.spec.train.dtype, run.formulas, {.count = 1}).weights;
  const double each_use = moved_unit_bytes(run, share, of_weight) - moved_unit_bytes(run, share, 0);
  if (memory.parameters != Tier::Disk || memory.limit_gb == 0) return {each_use};
  const double block = of_weight * in_units(run, share.block).all(), end = of_weight * end_in_use(run, share);
  const double left = static_cast<double>(bytes_for_parameters(limit_bytes(memory), static_cast<int64_t>(beside)));
  if (left < block + std::max(block, end)) return {each_use};
  const double all = of_weight * in_units(run, share.parameters).all();
  const double held = std::min(all, end + std::floor((left - end) / block) * block);
  return {held, std::max(held == all ? all : held - 2 * block, 0.0) / all};
}

double tree_gradient_bytes(const PlannedRun& run, const RankShare& share) {
  const RunLayout& layout = run.layout;
  const int leaves = layout.microbatches / num_updates(run) / layout.copies_in_pipe;
  const ParameterSum all{.count = share.parameters.count() + share.both_uses.count};
  return std::bit_width(static_cast<unsigned>(leaves)) * state_bytes(run.spec.train.dtype, run.formulas, all).gradients;
}

}  // namespace braid::plan
