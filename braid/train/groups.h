// The groups of ranks of one rank's world: along the axes of the mesh, and those that hold the same parameters.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/mesh/device_mesh.h"
#include "braid/param/param_store.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/replication.h"
#include "braid/train/stage_layout.h"

namespace braid::train {

class Groups {
 public:
  // REQUIRES: the size of `world` is the mesh's. One copy of the parameters is sharded over `shards` ranks of those
  // that differ along data and context; 1: each rank has its own copy. They are neighbouring data ranks, each with all
  // its context ranks; under Reduction::Reproducible as many neighbours in the order of the sum. Collective.
  Groups(const mesh::DeviceMesh& mesh, const StageLayout& layout, Communicator& world, int shards = 1,
         Reduction reduction = Reduction::Reproducible);

  const mesh::DeviceMesh mesh;
  const mesh::Coords at;  // this rank's place
  const StageLayout layout;
  Communicator& world;

  // Returns the ranks that differ from this one along `axes` alone, in the order of the world. The first call for a set
  // of axes is collective over the world.
  Communicator& over(mesh::AxisSet axes) const;
  // Returns the ranks of one replica.
  Communicator& model() const { return over(mesh::AxisSet{mesh::Axis::Data}.complement()); }

  // Returns the groups of ranks with the same stages. `tied` are the ranks of a pipeline that hold either the first or
  // the last stage, which share a tied embedding; this rank alone if it holds both stages or neither.
  const sync::ReplicaGroups& replicas() const { return *replicas_; }
  // Returns the ranks that hold the shards of this rank's copy of the parameters; null if copies are whole.
  Communicator* shards() const { return shards_->size() > 1 ? shards_.get() : nullptr; }

  // The ranks that exchange reports at every step: the world, or one replica if replicas train independently.
  Communicator* step_report = &world;

  // Returns true if this rank reports the values that are the same on all ranks of its tensor axis.
  bool speaks() const { return at[mesh::Axis::Tensor] == 0; }
  // Returns true if this rank is the one of its mirrored pair that counts their parameters.
  bool first_of_pair() const { return layout.pair_of(at[mesh::Axis::Pipe]) == at[mesh::Axis::Pipe]; }

 private:
  std::unique_ptr<Communicator> all_replicas_, shards_, copies_, tied_;
  std::optional<sync::ReplicaGroups> replicas_;
  mutable std::vector<std::pair<mesh::AxisSet, std::unique_ptr<Communicator>>> over_;
};

// Returns the groups that all-reduce the gradients of parameters split along one of kSampleAxes. There is one group for
// each set of axes that summed_axes() returns for such a parameter of `store`, split from the replicas. Empty if no
// parameter is split so. check() fails if a parameter is split over data ranks, which are whole replicas. Collective
// over the replicas.
std::vector<sync::SumGroup> sum_groups(const Groups& groups, const param::ParamStore& store);

}  // namespace braid::train
