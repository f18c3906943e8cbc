#include "braid/spec/early_updates.h"

#include "braid/spec/partition.h"

namespace braid::spec {

bool updates_early(const RunSpec& spec) {
  const ScheduleTraits* const traits = traits_of(spec.pipeline);
  if (!traits || traits->asynchronous() || traits->placement == schedule::StagePlacement::Mirrored) return false;
  const bool sums_uses = spec.mesh.pipe > 1 && spec.model.output_weights == OutputWeights::Tied;
  return spec.memory.optimizer == Tier::Disk && !sums_uses && spec.mesh.data == 1 && spec.mesh.context == 1 &&
         spec.sync.replication == ReplicationKind::AllReduce;
}

bool speculates(const RunSpec& spec) {
  const bool needs_norm =
      spec.optimizer.clip_norm > 0 || spec.train.on_spike != OnSpike::Stop || spec.train.dtype == DType::Float16;
  return needs_norm && updates_early(spec);
}

}  // namespace braid::spec
