// Makes the replication of a configuration on a mesh.
#include "braid/train/run_replication.h"

#include <utility>

#include "braid/nn/kernels/product_bf16.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/sync/make_replication.h"

namespace braid::train {
namespace {

// Returns the limit of a rank that reads parameters from disk, and its predicted peak of all else.
sync::ParameterMemory parameter_memory(const RunSpec& spec, int pipe_rank) {
  if (spec.memory.parameters != Tier::Disk || spec.memory.limit_gb == 0) return {};
  plan::Cluster cluster = plan::nominal_cluster(spec);
  cluster.devices.front().bfloat16_products = kernels::has_product_bf16();
  const auto prediction = plan::nominal_prediction(spec, cluster);
  if (!prediction) return {limit_bytes(spec.memory)};
  const plan::RankMemory& memory = prediction->memory[pipe_rank];
  return {limit_bytes(spec.memory), memory.total() - memory.parameters};
}

}  // namespace

std::unique_ptr<sync::Replication> run_replication(const RunSpec& spec, RankModel& model, Communicator* with_servers) {
  const Groups& groups = model.groups();
  sync::ReplicationParts parts{.store = model.params(),
                               .unit_sink = model.unit_sink(),
                               .stage_of_block = model.stage_of_block(),
                               .runs_backward = model.runs_backward(),
                               .parameter_memory = parameter_memory(spec, groups.at[mesh::Axis::Pipe]),
                               .ranks_per_replica = groups.layout.mirrored() ? 2 : 1,
                               .model_part = groups.at[mesh::Axis::Tensor],
                               .seed = spec.train.seed,
                               .sum_groups = sum_groups(groups, model.params()),
                               .optimizer = spec.optimizer,
                               .with_servers = with_servers,
                               .num_steps = spec.train.steps};
  auto made = sync::make_replication(spec.sync, groups.replicas(), std::move(parts));
  sync::Replication* replication = made.get();
  model.sink().on_ready = [replication](const param::Parameter& param) { replication->ready(param); };
  if (model.params().shards_parameters()) {
    model.set_hooks({[replication](int block, param::Phase phase) { replication->acquire(block, phase); },
                     [replication](int block, param::Phase phase) { replication->release(block, phase); }});
  }
  return made;
}

}  // namespace braid::train
