// One split per group; the colour of a group is its lowest rank.
#include "braid/train/rank_groups.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::train {
namespace {

std::unique_ptr<Communicator> group_along(const mesh::DeviceMesh& mesh, Communicator& world, mesh::AxisSet axes,
                                          std::string name) {
  return world.split(mesh.peers(world.rank(), axes).front(), world.rank(), std::move(name));
}

// The ranks with the first and with the last stage join; one that has both, or neither, is a group of its own.
int tied_colour(const mesh::DeviceMesh& mesh, const StageLayout& layout, int rank) {
  const int pipe = mesh.coords(rank)[mesh::Axis::Pipe];
  const bool one_end = layout.holds(pipe, 0) != layout.holds(pipe, layout.num_stages() - 1);
  return one_end ? mesh.peers(rank, {mesh::Axis::Pipe}).front() : mesh.num_ranks() + rank;
}

// Ranks in the order of their samples, the lower rank of a mirrored pair before the other: so that a sum over the group
// continues the tree over microbatches.
std::unique_ptr<Communicator> replica_group(const mesh::DeviceMesh& mesh, const StageLayout& layout,
                                            Communicator& world) {
  mesh::Coords first = mesh.coords(world.rank());
  const int pipe = first[mesh::Axis::Pipe];
  first[mesh::Axis::Pipe] = layout.pair_of(pipe);
  const int colour = mesh.peers(mesh.rank(first), mesh::kSampleAxes).front();
  const int place = 2 * mesh.index(world.rank(), mesh::kSampleAxes) + (first[mesh::Axis::Pipe] == pipe ? 0 : 1);
  return world.split(colour, place, "replicas");
}

}  // namespace

RankGroups::RankGroups(const mesh::DeviceMesh& the_mesh, const StageLayout& the_layout, Communicator& the_world,
                       int shard_data)
    : mesh(the_mesh), at(the_mesh.coords(the_world.rank())), layout(the_layout), world(the_world) {
  check(world.size() == mesh.num_ranks(), "a world has one rank per place of its mesh");
  tensor = group_along(mesh, world, {mesh::Axis::Tensor}, "tensor");
  pipe = group_along(mesh, world, {mesh::Axis::Pipe}, "pipe");
  data = group_along(mesh, world, {mesh::Axis::Data}, "data");
  model = group_along(mesh, world, mesh::AxisSet{mesh::Axis::Data}.complement(), "model");
  replicas = replica_group(mesh, layout, world);
  const int parts = shard_data == 1 ? 1 : shard_data * (layout.mirrored() ? 2 : 1);
  check(replicas->size() % parts == 0, "copies are shared out alike");
  shards = replicas->split(replicas->rank() / parts, replicas->rank(), "shards");
  copies = replicas->split(replicas->rank() % parts, replicas->rank(), "copies");
  tied = world.split(tied_colour(mesh, layout, world.rank()), world.rank(), "tied");
}

std::vector<sync::SumGroup> sum_groups(const RankGroups& groups, const param::ParamStore& store) {
  std::vector<sync::SumGroup> made;
  const int rank = groups.world.rank();
  Communicator& replicas = *groups.replicas;
  for (const param::Parameter& param : store.params()) {
    const mesh::AxisSet axes = mesh::summed_axes(param.placement), split = mesh::kSampleAxes - axes;
    check(axes.has(mesh::Axis::Data),
          cat(param.name, ": data ranks hold copies of every parameter; sync.zero shards them"));
    const auto is_there = [&](const sync::SumGroup& each) { return each.axes == axes; };
    if (axes == mesh::kSampleAxes || std::any_of(made.begin(), made.end(), is_there)) continue;
    auto ranks = replicas.split(groups.mesh.index(rank, split), replicas.rank(), "copies of " + param.name);
    made.push_back({axes, std::move(ranks), groups.mesh.index(rank, split | mesh::AxisSet{mesh::Axis::Tensor})});
  }
  return made;
}

}  // namespace braid::train
