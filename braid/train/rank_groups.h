// The communicators of one rank: the world split along the axes of the mesh.
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
  // Splits `world`, whose size is the mesh's. One copy of the parameters is sharded over `shard_data` data ranks (a
  // divisor of the data axis); 1: each data rank has its own copy. Collective.
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
  std::unique_ptr<Communicator> shards;    // ranks of `replicas` that hold the shards of one copy; size 1: not sharded
  std::unique_ptr<Communicator> copies;    // ranks of `replicas` that hold the same shard
  // The ranks of a pipeline that hold either the first or the last stage, which share a tied embedding. Size 1 for a
  // rank that holds both stages or neither.
  std::unique_ptr<Communicator> tied;

  // The ranks that exchange reports at every step: the world, or one replica if replicas train independently.
  Communicator* step_report = &world;

  // Returns true if this rank reports the values that are the same on all ranks of its tensor axis.
  bool speaks() const { return at[mesh::Axis::Tensor] == 0; }
  // Returns true if this rank is the one of its mirrored pair that counts their parameters.
  bool first_of_pair() const { return layout.pair_of(at[mesh::Axis::Pipe]) == at[mesh::Axis::Pipe]; }
};

// Returns the groups that all-reduce the gradients of parameters split along one of kSampleAxes. There is one group for
// each set of axes that summed_axes() returns for such a parameter of `store`, split from groups.replicas. Empty if no
// parameter is split so. check() fails if a parameter is split over data ranks, which are whole replicas. Collective
// over groups.replicas.
std::vector<sync::SumGroup> sum_groups(const RankGroups& groups, const param::ParamStore& store);

}  // namespace braid::train
