// One split per group; the colour of a group is its lowest rank.
#include "braid/train/rank_groups.h"

#include "braid/base/errors.h"

namespace braid {
namespace {

std::unique_ptr<Communicator> group_along(const DeviceMesh& mesh, Communicator& world, AxisSet axes, std::string name) {
  return world.split(mesh.peers(world.rank(), axes).front(), world.rank(), std::move(name));
}

// Ranks on the first and last stage join; a rank in between is a group of its own.
int tied_colour(const DeviceMesh& mesh, int rank) {
  const int stage = mesh.coords(rank)[Axis::Pipe];
  const bool at_an_end = stage == 0 || stage == mesh.size(Axis::Pipe) - 1;
  return at_an_end ? mesh.peers(rank, {Axis::Pipe}).front() : mesh.num_ranks() + rank;
}

}  // namespace

RankGroups::RankGroups(const DeviceMesh& the_mesh, Communicator& the_world)
    : mesh(the_mesh), at(the_mesh.coords(the_world.rank())), world(the_world) {
  check(world.size() == mesh.num_ranks(), "a world has one rank per place of its mesh");
  tensor = group_along(mesh, world, {Axis::Tensor}, "tensor");
  pipe = group_along(mesh, world, {Axis::Pipe}, "pipe");
  data = group_along(mesh, world, {Axis::Data}, "data");
  model = group_along(mesh, world, {Axis::Pipe, Axis::Tensor}, "model");
  tied = world.split(tied_colour(mesh, world.rank()), world.rank(), "tied");
}

}  // namespace braid
