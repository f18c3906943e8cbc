// The parameters of blocks, embedding and head, gathered and summed unit by unit.
#include "braid/plan/buffer_memory.h"

#include <algorithm>
#include <bit>

namespace braid::plan {
namespace {

// Returns the parameters that are sharded.
ParameterSum sharded_of(const PlannedRun& run, const StageParameters& parameters) {
  ParameterSum sum;
  if (num_shards(run.spec, run.layout, run.layout.gradient_group) > 1) sum += parameters.shared;
  if (num_shards(run.spec, run.layout, run.layout.expert_gradient_group) > 1) sum += parameters.experts;
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

}  // namespace

double exchange_buffer_bytes(const PlannedRun& run, const RankShare& share) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const ParameterSum all = sharded_of(run, share.parameters);
  if (spec.sync.zero < 2 || all.all() == 0 || share.blocks == 0) return summed_copies_bytes(run, share);
  const StateBytes bytes = state_bytes(spec.train.dtype, formulas, {.count = 1});
  const ParameterSum block = sharded_of(run, share.block), ends = sharded_of(run, {.shared = share.ends});
  const double uses = layout.pipe == 1 ? 2 : 1;  // number of uses of a tied table on one rank
  const double tied = std::min(tied_parameters(spec, layout).count, ends.count);
  const double gradients = std::min(3 * block.count, all.count - ends.count) + ends.count + (uses - 1) * tied;
  const double stages = std::min(1.0, static_cast<double>(kMostStagesGathered) / layout.chunks) * all.all();
  const double gathered = spec.sync.zero_gather == GatherUnit::Stage
                              ? stages
                              : std::min(2 * block.all(), all.all() - ends.all()) + ends.all();
  const double weights = spec.sync.zero == 3 ? gathered : 0;
  const bool in_units = spec.train.reduction == Reduction::Fast;
  return (in_units ? gradients * bytes.gradients : 0) + weights * bytes.weights;
}

double tree_gradient_bytes(const PlannedRun& run, const RankShare& share) {
  const RunLayout& layout = run.layout;
  const int leaves = layout.microbatches / num_updates(run) / layout.copies_in_pipe;
  const ParameterSum all{.count = share.parameters.count() + share.both_uses.count};
  return std::bit_width(static_cast<unsigned>(leaves)) * state_bytes(run.spec.train.dtype, run.formulas, all).gradients;
}

}  // namespace braid::plan
