// Computes the facts of each stage and rank. A stage that equals the one before it is not computed again.
#include "braid/plan/rank_shards.h"

#include <algorithm>
#include <set>

#include "braid/plan/activation_memory.h"
#include "braid/plan/braid_memory.h"
#include "braid/plan/moved_activations.h"
#include "braid/plan/torchtitan.h"
#include "braid/spec/partition.h"
#include "braid/spec/rank_hosts.h"

namespace braid::plan {

int cores_of_rank(const RunSpec& spec, const Cluster& cluster, int per_node) {
  const int all = per_node * (cluster.num_nodes() + cluster.server_nodes);
  return std::min(std::max(per_node / ranks_of_node(spec, cluster), 1), spec::threads_per_rank(spec, all));
}

Cluster with_cores_of_ranks(Cluster cluster, const RunSpec& spec) {
  if (!cluster.devices.front().shared_cores) return cluster;
  const int ranks = ranks_of_node(spec, cluster);
  for (DeviceGroup& group : cluster.devices) {
    const int cores = cores_of_rank(spec, cluster, group.per_node);
    for (PeakRate& peak : group.peaks) peak.flops *= cores;
    group.memory_bytes_per_second *= cores;
    for (StreamRate& row : group.streams) row.bytes_per_second *= cores;
    for (AttentionRate& row : group.attention) row.forward *= cores, row.backward *= cores;
    group.memory_bytes *= static_cast<double>(group.per_node) / ranks;
    if (ranks > group.per_node && num_replicas(spec.mesh) > 1)
      group.skew = 0;  // a waiting rank leaves its core to another replica
  }
  return cluster;
}

double ranks_per_core(const PlannedRun& run) {
  const std::vector<DeviceGroup>& kinds = run.cluster.devices;
  if (!kinds.front().shared_cores) return 0;
  const auto cores = [&](const StageLoad& stage) { return kinds[stage.devices].per_node; };
  return static_cast<double>(run.layout.most_of_node) / cores(std::ranges::min(run.layout.stages, {}, cores));
}

double cores_of_replica(const PlannedRun& run, double crowd) {
  const double mean =
      static_cast<double>(run.spec.train.batch) / run.spec.train.microbatch / num_replicas(run.spec.mesh);
  const double share = run.cluster.devices.size() == 1 ? run.layout.microbatches / mean : 1;
  return std::min<double>(run.layout.pipe, run.layout.pipe / crowd * share);
}

namespace {

HeldBytes held_by_stage(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  const double constant = constant_bytes(run.spec, run.layout, load);
  StageLoad keeping = load;  // a weight-gradient pass recomputes no block
  if (load.recompute.keeps != spec::Recompute::Keeps::Selected) keeping.recompute = {};
  HeldBytes held{.pending = pending_kept_bytes(x, load),
                 .weight_working = weight_working_bytes(run, x, keeping) + constant};
  if (load.on_tier == 0) {
    held.activation = kept_bytes(x, load);
    held.working = held.forward_working = working_most_bytes(run, x, load) + constant;
    return held;
  }
  const MovedActivations moved = moved_activations(run, x, load);
  held.activation = moved.memory.kept;
  held.working = moved.peaks.backward - held.activation + constant;
  held.forward_working = std::max(moved.peaks.forward - held.activation, moved.head_working) + constant;
  held.last_moved = moved.last;
  if (!load.head) held.copies_left = moved.last;
  if (!load.embedding) held.beside_copies = moved.peaks.forward_of_first + constant;  // else that part is the embedding
  return held;
}

}  // namespace

std::vector<StageFacts> stage_facts(const PlannedRun& run, const PartParameters& parts) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const std::vector<StagePasses> passes = stage_passes(spec, layout, cluster, formulas);
  const ActivationBytes tensors(spec, layout);
  std::vector<StageFacts> all(passes.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const StageLoad& load = layout.stages[i];
    if (i > 0 && load == layout.stages[i - 1]) {
      all[i] = all[i - 1];
      continue;
    }
    const StageParameters parameters = stage_parameters(parts, load);
    if (formulas == FormulaSet::Braid) {
      const double moved = moved_activations(run, tensors, load).memory.moved;
      all[i] = {passes[i], parameters, held_by_stage(run, tensors, load), {.read = moved, .written = moved}};
      continue;
    }
    if (is_torchtitan(formulas)) {
      const double kept = torchtitan_kept_bytes(run, load), working = torchtitan_working_bytes(run, load);
      all[i] = {passes[i], parameters, {kept, kept, working, working, working}};
      continue;
    }
    const ListedCounts listed = listed_counts(load);
    const spec::Recompute full{spec::Recompute::Keeps::SegmentInputs, 1};
    const double saved = (load.blocks - listed.blocks) * saved_bytes(spec, layout, load.recompute) +
                         listed.segments * saved_bytes(spec, layout, full);
    const double working = working_bytes(spec, layout, load);
    all[i] = {
        passes[i],
        parameters,
        {saved + end_bytes(spec, layout, load), load.blocks * pending_bytes(spec, layout), working, working, working}};
  }
  return all;
}

std::vector<RankShare> rank_shares(const PlannedRun& run, const ScheduleTraits& traits,
                                   const std::vector<StageFacts>& stages, const PartParameters& parts) {
  const RunLayout& layout = run.layout;
  const bool mirrored = traits.placement == schedule::StagePlacement::Mirrored;
  std::vector<RankShare> shares(layout.pipe, {.block = parts.block});
  const auto add = [&](int rank, size_t stage, double share_of_passes) {
    RankShare& share = shares[rank];
    const StagePasses& passes = stages[stage].passes;
    share.parameters += stages[stage].parameters;
    share.ends += end_parameters(parts, layout.stages[stage]);
    share.devices = layout.stages[stage].devices;
    share.blocks += layout.stages[stage].blocks;
    share.activations.read += stages[stage].activations.read;
    share.activations.written += stages[stage].activations.written;
    share.embedding |= layout.stages[stage].embedding;
    share.head |= layout.stages[stage].head;
    share.passes.forward += share_of_passes * passes.forward;
    share.passes.input_grad += share_of_passes * passes.input_grad;
    share.passes.weight_grad += share_of_passes * passes.weight_grad;
  };
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int rank = schedule::owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stage));
    add(rank, stage, mirrored ? 0.5 : 1);
    if (mirrored) add(layout.pipe - 1 - rank, stage, 0.5);
  }
  const int first = schedule::owner_of_stage(traits.placement, layout.pipe, 0);
  const int last = schedule::owner_of_stage(traits.placement, layout.pipe, static_cast<int>(stages.size()) - 1);
  if (first != last && !mirrored) return shares;
  const ParameterSum tied = tied_parameters(run.spec, layout);
  for (const int rank : std::set{first, last}) {
    shares[rank].both_uses = tied;
    if (stages.size() == 1) continue;
    shares[rank].parameters.shared += -1 * tied;
    shares[rank].ends += -1 * tied;
  }
  return shares;
}

}  // namespace braid::plan
