// One list of moves has the bytes of the whole step, which are printed, and those of its passes, which are drawn.
#include "braid/plan/step_moves.h"

#include <algorithm>

#include "braid/plan/data_exchange.h"
#include "braid/plan/tier_bytes.h"
#include "braid/spec/early_updates.h"

namespace braid::plan {

double move_seconds(const PlannedRun& run, Tier tier, const Moved& bytes) {
  const Cluster& cluster = run.cluster;
  const double link = cluster.host.bytes_per_second;
  const double in = link > 0 ? bytes.read / link : 0, out = link > 0 ? bytes.written / link : 0;
  if (tier == Tier::Host) return std::max(in, out);
  if (tier != Tier::Disk) return 0;
  const double ranks = run.layout.most_of_node;
  return std::max(ranks * bytes.read / cluster.disk.read_bytes_per_second, in) +
         std::max(ranks * bytes.written / cluster.disk.write_bytes_per_second, out);
}

double copy_seconds(const PlannedRun& run, size_t devices, const Moved& bytes) {
  if (run.spec.memory.activations != Tier::Disk) return 0;
  constexpr double kBeyondCaches = 64 << 20;
  return run.rates[devices].stream_seconds(3 * bytes.written + bytes.read, kBeyondCaches);
}

double microbatches_of_stage(const PlannedRun& run) {
  return static_cast<double>(run.layout.microbatches) / run.layout.copies_in_pipe;
}

// Passes are those of a mean stage of the rank, moves those of all of its stages.
PassWaits pass_waits(const PlannedRun& run, const RankShare& share, double kept_weights) {
  const StateBytes held = held_bytes(run.spec, run.layout, run.formulas, share.parameters);
  const MemorySpec& tiers = run.spec.memory;
  const double m = microbatches_of_stage(run), of_stage = 1.0 / run.layout.copies_in_pipe;
  const double read = of_stage * (1 - kept_weights * (2 * m - 1) / (2 * m));
  const double weights = move_seconds(run, tiers.parameters, {.read = read * (held.weights + held.frozen)});
  const double sums =
      move_seconds(run, tiers.gradients, {of_stage * (m - 1) / m * held.gradients, of_stage * held.gradients});
  const double forward = share.passes.forward.total();
  const double backward = share.passes.input_grad.total() + share.passes.weight_grad.total();
  const Moved out{.written = of_stage * share.activations.written}, in{.read = of_stage * share.activations.read};
  return {copy_seconds(run, share.devices, out) +
              std::max(weights + move_seconds(run, tiers.activations, out) - forward, 0.0),
          copy_seconds(run, share.devices, in) +
              std::max(weights + sums + move_seconds(run, tiers.activations, in) - backward, 0.0)};
}

namespace {

using schedule::DiskContent;

// Returns the moves of an update of `held`, to the tiers of what moves.
std::vector<DiskMove> update_moves(const PlannedRun& run, const StateBytes& held) {
  const MemorySpec& tiers = run.spec.memory;
  const auto on = [&](Tier tier, double bytes) { return is_resident(tier) ? 0 : bytes; };
  const double states = on(tiers.optimizer, held.optimizer), weights = on(tiers.parameters, held.weights);
  // Weights that are not rounded are the masters, which the update reads too.
  const double masters = held.weights < held.gradients ? 0 : weights;
  return {{MovedWith::Update, DiskContent::Optimizer, {states, states}},
          {MovedWith::Update, DiskContent::Gradients, {.read = on(tiers.gradients, held.gradients)}},
          {MovedWith::Update, DiskContent::Parameters, {masters, weights + backup_bytes(run.spec, held)}}};
}

Moved sum_of(const std::vector<DiskMove>& moves) {
  Moved sum;
  for (const DiskMove& move : moves) sum = {sum.read + move.bytes.read, sum.written + move.bytes.written};
  return sum;
}

}  // namespace

double offload_seconds(const PlannedRun& run, const StateBytes& held) {
  return move_seconds(run, run.spec.memory.optimizer, sum_of(update_moves(run, held)));
}

double hidden_offload_seconds(const PlannedRun& run, const RankShare& share) {
  return spec::updates_early(run.spec) ? share.passes.input_grad.total() + share.passes.weight_grad.total() : 0;
}

namespace {

// Returns the gradients of a rank that other ranks with the same shard add to theirs after the last microbatch.
double gradients_with_copies(const PlannedRun& run, const RankShare& share) {
  const bool shards = run.spec.sync.zero > 0;
  double bytes = 0;
  for (const CopiedParameters& part : copied_parameters(run.spec, run.layout, run.formulas, share.parameters)) {
    if (part.copies.size <= (shards ? part.shards : 1)) continue;
    bytes += sharded(part.bytes, shards ? 3 : 0, part.shards).gradients;
  }
  return bytes;
}

}  // namespace

StateBytes updated_states(const PlannedRun& run, const RankShare& share) {
  StateBytes own;
  for (const CopiedParameters& part : copied_parameters(run.spec, run.layout, run.formulas, share.parameters)) {
    own += sharded(part.bytes, run.spec.sync.zero > 0 ? 3 : 0, part.shards);
  }
  return own;
}

std::vector<DiskMove> disk_moves(const PlannedRun& run, const RankShare& share, double kept_weights) {
  const MemorySpec& tiers = run.spec.memory;
  const StateBytes held = held_bytes(run.spec, run.layout, run.formulas, share.parameters);
  const double m = microbatches_of_stage(run), weights = held.weights + held.frozen, left = 1 - kept_weights;
  const Moved& activations = share.activations;
  std::vector<DiskMove> moves;
  if (tiers.parameters == Tier::Disk) {
    moves = {
        {MovedWith::FirstForward, DiskContent::Parameters, {.read = kept_weights * weights}},
        {MovedWith::Forward, DiskContent::Parameters, {.read = left * m * weights}},
        {MovedWith::Backward, DiskContent::Parameters, {.read = left * m * (weights - held.forward_only)}},
    };
  }
  if (tiers.gradients == Tier::Disk) {
    moves.push_back({MovedWith::LaterWeightPass, DiskContent::Gradients, {.read = (m - 1) * held.gradients}});
    moves.push_back({MovedWith::WeightPass, DiskContent::Gradients, {.written = m * held.gradients}});
    const double summed = gradients_with_copies(run, share);
    moves.push_back({MovedWith::Norm, DiskContent::Gradients, {held.gradients + summed, summed}});
  }
  if (tiers.activations == Tier::Disk) {
    moves.push_back({MovedWith::Forward, DiskContent::Activations, {.written = m * activations.written}});
    moves.push_back({MovedWith::Backward, DiskContent::Activations, {.read = m * activations.read}});
  }
  if (tiers.optimizer == Tier::Disk) {
    const int updates = num_updates(run);
    for (DiskMove move : update_moves(run, updated_states(run, share))) {
      move.bytes = {updates * move.bytes.read, updates * move.bytes.written};
      moves.push_back(move);
    }
  }
  return moves;
}

double disk_bytes(const PlannedRun& run, const RankShare& share, double kept_weights) {
  const Moved sum = sum_of(disk_moves(run, share, kept_weights));
  return sum.read + sum.written;
}

}  // namespace braid::plan
