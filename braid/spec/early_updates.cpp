#include "braid/spec/early_updates.h"

#include "braid/spec/partition.h"

namespace braid::spec {

namespace {

// Returns true if gradients of replicas are summed after backward: with no overlap, where they are compressed, and
// where several ranks hold the same shard.
bool sums_after_backward(const RunSpec& spec) {
  const int64_t replicas = num_replicas(spec.mesh) * spec.mesh.context;
  if (replicas == 1) return false;
  const MemorySpec& memory = spec.memory;
  const bool has_units = spec.sync.zero > 0 || memory.gradients == Tier::Disk || memory.parameters == Tier::Disk;
  if (has_units) return num_shards(spec) < replicas;
  return spec.sync.overlap == OverlapChoice::Off || spec.sync.compression != CompressionKind::None;
}

}  // namespace

bool updates_early(const RunSpec& spec) {
  const ScheduleTraits* const traits = traits_of(spec.pipeline);
  if (!traits || traits->asynchronous() || traits->placement == schedule::StagePlacement::Mirrored) return false;
  const bool sums_uses = spec.mesh.pipe > 1 && spec.model.output_weights == OutputWeights::Tied;
  return spec.memory.optimizer == Tier::Disk && !sums_uses && !sums_after_backward(spec) &&
         spec.sync.replication == ReplicationKind::AllReduce;
}

bool speculates(const RunSpec& spec) {
  const bool needs_norm =
      spec.optimizer.clip_norm > 0 || spec.train.on_spike != OnSpike::Stop || spec.train.dtype == DType::Float16;
  return needs_norm && updates_early(spec);
}

}  // namespace braid::spec
