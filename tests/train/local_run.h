// Runs of replicas that train apart, for the tests of what they train and of what they keep.
#pragma once

#include <ATen/Parallel.h>

#include <memory>
#include <mutex>
#include <string>

#include "braid/comm/local/run_ranks.h"
#include "braid/mesh/device_mesh.h"
#include "braid/spec/describe.h"
#include "tests/train/layout_run.h"

namespace braid {

inline constexpr int kPerReplica = 2;  // microbatches of a step

inline RunSpec local_spec(const std::string& replication, int period, const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(6, kPerReplica * mesh.data);
  spec.model.layers = 4;
  spec.mesh = mesh;
  spec.sync.replication = value_of<ReplicationKind>(replication).value();
  spec.sync.period = period;
  spec.train.steps = 5;
  spec.data.paths = {"text"};  // for the configuration that checkpoints hold; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

// Steps on `corpus`; at `save_at` the training goes on from a checkpoint in new trainers. Parameters of the first
// replica.
inline LayoutResult train_locally(const RunSpec& spec, const data::Corpus& corpus, int save_at = 0,
                                  const std::string& folder = "") {
  LayoutResult result;
  std::mutex lock;
  run_ranks(mesh::DeviceMesh(spec.mesh).num_ranks(), [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    auto trainer = std::make_unique<train::Trainer>(spec, corpus, world);
    while (trainer->num_steps() < spec.train.steps) {
      const double loss = trainer->step().loss;
      if (world.rank() == 0) result.losses.push_back(loss);
      if (trainer->num_steps() != save_at) continue;
      trainer->save(folder, spec::to_toml(spec));
      trainer = std::make_unique<train::Trainer>(spec, corpus, world);
      trainer->load(folder);
    }
    const std::scoped_lock hold(lock);
    if (trainer->groups().at[mesh::Axis::Data] == 0) collect(*trainer, result.params, Held::Weights);
  });
  return result;
}

}  // namespace braid
