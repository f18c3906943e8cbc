// The communicators of one rank: the world cut along the axes of the mesh. It owns them and does nothing else.
#pragma once

#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/mesh/device_mesh.h"
#include "braid/param/param_store.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/train/stage_layout.h"

namespace braid::train {

struct RankGroups {
  // Collective over `world`, whose size is the mesh's. One copy of the parameters is sharded over `shard_data` data
  // ranks (a divisor of the data axis); 1: each has its own.
  RankGroups(const mesh::DeviceMesh& mesh, const StageLayout& layout, Communicator& world, int shard_data = 1);

  mesh::DeviceMesh mesh;
  mesh::Coords at;  // this rank's place
  StageLayout layout;
  Communicator& world;
  std::unique_ptr<Communicator> tensor;
  std::unique_ptr<Communicator> pipe;
  std::unique_ptr<Communicator> data;
  std::unique_ptr<Communicator> model;     // all axes but data: one replica
  std::unique_ptr<Communicator> replicas;  // all ranks with the same stages: kSampleAxes x the pair of a mirrored stage
  std::unique_ptr<Communicator> shards;    // of the replicas, those that hold the shards of one copy; else 1
  std::unique_ptr<Communicator> copies;    // of the replicas, those that hold the same part of it
  std::unique_ptr<Communicator> tied;  // the ranks with one end of the model each, which share the embedding; else 1

  // The ranks that tell each other at every step what it came to: the world, or one replica where replicas go on
  // without each other.
  Communicator* step_report = &world;

  // Returns true if this rank reports values that all ranks of its tensor axis have.
  bool speaks() const { return at[mesh::Axis::Tensor] == 0; }
  // Returns true if this rank is the one of its mirrored pair that counts their parameters.
  bool first_of_pair() const { return layout.pair_of(at[mesh::Axis::Pipe]) == at[mesh::Axis::Pipe]; }
};

// The groups over which gradients are summed of parameters that are split along one of kSampleAxes: one for each set of
// axes that summed_axes() gives in `store`, cut from groups.replicas. Empty where no parameter is. check() fails where
// one is split over data ranks, which are whole replicas. Collective over groups.replicas.
std::vector<sync::SumGroup> sum_groups(const RankGroups& groups, const param::ParamStore& store);

}  // namespace braid::train
