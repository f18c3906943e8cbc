// The times of exchanges over links that computation does not hide.
#include "braid/plan/data_exchange.h"

#include <algorithm>
#include <cmath>

#include "braid/plan/step_moves.h"
#include "braid/spec/partition.h"

namespace braid::plan {

namespace {

// A group of parameters whose copies are on the same ranks.
struct Copies {
  GroupLinks links;
  double weight_bytes, gradient_bytes;
  double again_bytes;  // weights that backward gathers
};

// The number of gathers and scatters in a step; parameters that are never gathered are all-reduced.
struct Times {
  int scatters = 1, gathers = 0;

  bool gathers_each() const { return gathers > 1; }  // true: weights are gathered before both passes of each microbatch
};

struct Exchange {
  std::vector<Copies> parts;         // exchanged one after the other
  double forward = 0, backward = 0;  // seconds of one microbatch's passes
  double last_share = 1;             // fraction of the exchange in the last bucket, which nothing hides
  bool overlaps = false;

  template <class Seconds>
  double sum(const Seconds& of) const {
    double seconds = 0;
    for (const Copies& part : parts) seconds += of(part);
    return seconds;
  }
  double gather() const {
    return sum([](const Copies& part) { return part.links.all_gather_seconds(part.weight_bytes); });
  }
  double gather_again() const {
    return sum([](const Copies& part) { return part.links.all_gather_seconds(part.again_bytes); });
  }
  double scatter() const {
    return sum([](const Copies& part) { return part.links.reduce_scatter_seconds(part.gradient_bytes); });
  }
  double all_reduce() const {
    return sum([](const Copies& part) { return part.links.all_reduce_seconds(part.gradient_bytes); });
  }
  // Returns the part of `seconds` that `cover` seconds of computation do not hide.
  double exposed(double seconds, double cover) const {
    if (!overlaps) return seconds;
    return std::max(seconds - (1 - last_share) * cover, last_share * seconds);
  }
};

// Returns the exposed time of FSDP2. While a block computes, the next block's weights are gathered and the previous
// block's gradients are reduce-scattered.
double fsdp_seconds(const Exchange& x, const Times& times) {
  const double gather = x.gather();
  const double again = times.gathers > times.scatters ? x.gather_again() : 0;
  return times.scatters * (x.exposed(gather, x.forward) + x.exposed(x.scatter() + again, x.backward));
}

double step_seconds(const Exchange& x, const Times& times) {
  if (times.gathers == 0) return x.exposed(x.all_reduce(), x.backward);
  const double gather = times.gathers_each() ? x.gather() : 0;
  const double again = times.gathers_each() ? x.gather_again() : 0;
  return times.scatters * (x.exposed(x.scatter() + again, x.backward) + x.exposed(gather, x.forward)) +
         (times.gathers_each() ? 0 : x.gather());
}

bool overlaps(const PlannedRun& run) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  if (cluster.devices.front().shared_cores && !layout.gradient_group.across_nodes()) return false;
  if (is_torchtitan(formulas)) return true;
  return spec.sync.zero == 3 || (formulas == FormulaSet::Braid && spec.sync.overlap != OverlapChoice::Off);
}

Times times_of(const PlannedRun& run) {
  const SyncSpec& sync = run.spec.sync;
  const int m = run.layout.microbatches;
  if (is_torchtitan(run.formulas) && sync.zero > 0) {
    const int passes = run.layout.pipe > 1 ? 1 : m;  // with pipeline ranks, weights stay gathered
    return {passes, run.layout.pipe == 1 && sync.zero == 3 ? 2 * passes : passes};
  }
  // Stages that are gathered as a whole stay gathered over all microbatches if a rank has at most kMostStagesGathered.
  const bool stay = sync.zero_gather == GatherUnit::Stage && run.layout.chunks <= kMostStagesGathered;
  return {sync.zero < 2 ? 1 : m, sync.zero == 0 ? 0 : sync.zero < 3 || stay ? 1 : 2 * m};
}

// Returns the seconds of the second all-reduce with several sharding groups. It sums each shard over one rank of each
// group.
double copies_seconds(const CopiedParameters& part, const Cluster& cluster, double shard_bytes) {
  const int copies = part.copies.size / std::max(part.shards, 1);
  if (copies <= 1) return 0;
  const int near = std::max(part.copies.per_node / part.shards, 1);
  return GroupLinks(cluster, {copies, near}).all_reduce_seconds(shard_bytes);
}

std::vector<CopiedParameters> copied_of(const PlannedRun& run, const RankShare& share) {
  return copied_parameters(run.spec, run.layout, run.formulas, share.parameters);
}

// Returns the bytes of weights that are gathered: all under ZeRO 3, otherwise those that are updated.
double gathered_bytes(const CopiedParameters& part, const RunSpec& spec) {
  return part.bytes.weights + (spec.sync.zero == 3 ? part.bytes.frozen : 0);
}

// Returns the part of gathered_bytes() that backward does not gather again.
double unread_bytes(const CopiedParameters& part, const RunSpec& spec) {
  return spec.sync.zero == 3 ? part.bytes.forward_only : 0;
}

}  // namespace

int num_updates(const PlannedRun& run) {
  const ScheduleTraits& schedule = *spec::traits_of(run.spec.pipeline);
  if (!schedule.asynchronous()) return 1;
  if (*schedule.versions != schedule::VersionRule::DoubleBuffered) return run.layout.microbatches;
  const int group = run.spec.pipeline.group > 0 ? run.spec.pipeline.group : run.layout.pipe;
  return std::max(run.layout.microbatches / group, 1);
}

double data_seconds(const PlannedRun& run, const RankShare& share, double kept_weights) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const int zero = spec.sync.zero;
  Exchange x;
  double copies = 0;
  for (const CopiedParameters& part : copied_of(run, share)) {
    const double weights = gathered_bytes(part, spec);
    if (part.copies.size <= 1 || weights == 0) continue;
    const int ranks = zero > 0 ? part.shards : part.copies.size;
    x.parts.push_back({{cluster, {ranks, std::min(ranks, part.copies.per_node)}},
                       weights,
                       part.summed_bytes,
                       weights - unread_bytes(part, spec)});
    if (zero > 0) copies += copies_seconds(part, cluster, part.summed_bytes / ranks);
  }
  const double moves = layout.microbatches * pass_waits(run, share, kept_weights).both() / num_updates(run);
  if (x.parts.empty()) return moves;
  x.forward = share.passes.forward.total();
  x.backward = share.passes.input_grad.total() + share.passes.weight_grad.total();
  x.last_share = 1 / std::max(share.blocks, 1.0);
  x.overlaps = overlaps(run);
  if (is_torchtitan(formulas) && zero > 0) {
    // The root group, embedding and head, is gathered before all blocks, and its gradients are reduced after them.
    const double of_root = 1 - share.blocks * share.block.count() / share.parameters.count();
    x.last_share = std::max(x.last_share, of_root);
    return fsdp_seconds(x, times_of(run)) + copies;
  }
  return moves + (step_seconds(x, times_of(run)) + copies) / std::max(spec.sync.period, 1);
}

double optimizer_seconds(const PlannedRun& run, const RankShare& share) {
  const auto& [spec, cluster, formulas, layout, rates] = run;
  const StateBytes own = updated_states(run, share);
  const double streamed = own.weights + 3 * own.gradients + 2 * own.optimizer;
  const double update = rates[share.devices].stream_seconds(streamed, own.optimizer);
  return std::max(update, offload_seconds(run, own) - hidden_offload_seconds(run, share)) +
         GroupLinks(cluster, layout.all_ranks).all_reduce_seconds(sizeof(float));
}

double tied_bytes(const PlannedRun& run, int last_rank) {
  if (last_rank == 0) return 0;
  const RunSpec& spec = run.spec;
  const int shards = spec.sync.zero > 0 ? num_shards(spec, run.layout, run.layout.gradient_group) : 1;
  return state_bytes(spec.train.dtype, run.formulas, tied_parameters(spec, run.layout)).gradients / shards;
}

double tied_seconds(const PlannedRun& run, int last_rank) {
  const double bytes = tied_bytes(run, last_rank);
  const RankGroup pair{2, run.layout.pipe_group.across_nodes() ? 1 : 2};
  return bytes > 0 ? GroupLinks(run.cluster, pair).all_reduce_seconds(bytes) : 0;
}

double sync_bytes(const PlannedRun& run, const RankShare& share) {
  const RunSpec& spec = run.spec;
  const Times times = times_of(run);
  double sum = 0;
  for (const CopiedParameters& part : copied_of(run, share)) {
    if (spec.sync.replication == ReplicationKind::ParameterServer) {
      sum += part.bytes.gradients / spec.sync.push_every;
      continue;
    }
    const int copies = part.copies.size, shards = spec.sync.zero > 0 ? part.shards : copies;
    const double one_way = (shards - 1.0) / shards, wire = part.summed_bytes;
    const double gradients = one_way * wire, weights = one_way * gathered_bytes(part, spec);
    const double again =
        2 * (copies - shards) / static_cast<double>(copies) / shards * wire;  // all-reduce over the sharding groups
    const double unread = times.gathers_each() ? times.gathers / 2.0 * one_way * unread_bytes(part, spec) : 0;
    sum += (times.gathers == 0 ? 2 * gradients : times.scatters * gradients + times.gathers * weights - unread) + again;
  }
  return sum / std::max(spec.sync.period, 1);
}

}  // namespace braid::plan
