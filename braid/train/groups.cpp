// Makes each group by one split. The colour of a group along axes is its lowest rank.
#include "braid/train/groups.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"

namespace braid::train {
namespace {

// Returns a name such as "tensor" or "pipe x tensor".
std::string name_of(mesh::AxisSet axes) {
  std::vector<std::string> names;
  for (int axis = 0; axis < mesh::kNumAxes; ++axis) {
    if (axes.has(mesh::Axis(axis))) names.push_back(text(mesh::Axis(axis)));
  }
  return joined(names, " x ");
}

// Returns the colour of the group that joins the ranks with the first and with the last stage. A rank that has both
// stages, or neither, is a group of its own.
int tied_colour(const mesh::DeviceMesh& mesh, const StageLayout& layout, int rank) {
  const int pipe = mesh.coords(rank)[mesh::Axis::Pipe];
  const bool one_end = layout.holds(pipe, 0) != layout.holds(pipe, layout.num_stages() - 1);
  return one_end ? mesh.peers(rank, {mesh::Axis::Pipe}).front() : mesh.num_ranks() + rank;
}

// Makes the group of replicas. Its ranks are in the order of runs of `run` samples' ranks (0: all), then of their part
// of the tokens, then of their samples, the lower rank of a mirrored pair before the other. With one run, an all-reduce
// over the group continues the reduction tree over microbatches, and adds the parts of the tokens last.
std::unique_ptr<Communicator> replica_group(const mesh::DeviceMesh& mesh, const StageLayout& layout,
                                            Communicator& world, int run) {
  mesh::Coords first = mesh.coords(world.rank());
  const int pipe = first[mesh::Axis::Pipe];
  first[mesh::Axis::Pipe] = layout.pair_of(pipe);
  const int colour = mesh.peers(mesh.rank(first), mesh::kSampleAxes).front();
  constexpr mesh::AxisSet kTokens{mesh::Axis::Context}, kSamples = mesh::kSampleAxes - kTokens;
  if (run == 0) run = static_cast<int>(mesh.peers(world.rank(), kSamples).size());
  const int sample = mesh.index(world.rank(), kSamples), part = mesh.index(world.rank(), kTokens);
  const int copy = (sample / run * mesh.size(mesh::Axis::Context) + part) * run + sample % run;
  const int place = 2 * copy + (first[mesh::Axis::Pipe] == pipe ? 0 : 1);
  return world.split(colour, place, "replicas");
}

}  // namespace

Groups::Groups(const mesh::DeviceMesh& the_mesh, const StageLayout& the_layout, Communicator& the_world, int shards,
               Reduction reduction)
    : mesh(the_mesh), at(the_mesh.coords(the_world.rank())), layout(the_layout), world(the_world) {
  check(world.size() == mesh.num_ranks(), "a world has one rank per place of its mesh");
  const comm::CallName name("groups of ranks");
  const bool apart = reduction == Reduction::Fast && shards > 1;
  all_replicas_ = replica_group(mesh, layout, world, apart ? shards / mesh.size(mesh::Axis::Context) : 0);
  Communicator& all = *all_replicas_;
  const int parts = shards == 1 ? 1 : shards * (layout.mirrored() ? 2 : 1);
  check(all.size() % parts == 0, "copies are sharded alike");
  shards_ = all.split(all.rank() / parts, all.rank(), "shards");
  copies_ = all.split(all.rank() % parts, all.rank(), "copies");
  tied_ = world.split(tied_colour(mesh, layout, world.rank()), world.rank(), "tied");
  replicas_.emplace(sync::ReplicaGroups{all, *shards_, *copies_, *tied_});
}

Communicator& Groups::over(mesh::AxisSet axes) const {
  const auto made = std::ranges::find(over_, axes, &decltype(over_)::value_type::first);
  if (made != over_.end()) return *made->second;
  const comm::CallName name("groups of ranks");
  auto group = world.split(mesh.peers(world.rank(), axes).front(), world.rank(), name_of(axes));
  return *over_.emplace_back(axes, std::move(group)).second;
}

std::vector<sync::SumGroup> sum_groups(const Groups& groups, const param::ParamStore& store) {
  std::vector<sync::SumGroup> made;
  const int rank = groups.world.rank();
  Communicator& replicas = groups.replicas().replicas;
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
