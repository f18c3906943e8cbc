// Assigns ranks to nodes, and finds the mesh axes that cross hosts.
#include "braid/cli/torch/run_placement.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/comm/transport/two_levels.h"
#include "braid/mesh/device_mesh.h"
#include "braid/spec/fields.h"
#include "braid/spec/rank_hosts.h"

namespace braid::cli {
namespace {

// Returns the axes along which some neighbours are on different hosts (`across`), or all are on the same host.
std::string axes_of(const mesh::DeviceMesh& mesh, const std::vector<int>& host_of_rank, bool across) {
  std::vector<std::string> names;
  for (int number = 0; number < mesh::kNumAxes; ++number) {
    const auto axis = static_cast<mesh::Axis>(number);
    if (mesh.size(axis) == 1) continue;
    bool crosses = false;
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      for (const int peer : mesh.peers(rank, {axis})) {
        crosses |= host_of_rank[static_cast<size_t>(peer)] != host_of_rank[static_cast<size_t>(rank)];
      }
    }
    if (crosses == across) names.push_back(mesh::text(axis));
  }
  return joined(names);
}

// Returns the axes whose groups have all collectives in two levels (comm/transport/two_levels.h).
std::string two_level_axes(const mesh::DeviceMesh& mesh, const std::vector<int>& node_of_rank) {
  const auto has_two_levels = [&](mesh::Axis axis) {
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      comm::transport::Group group{.id = 0, .name = mesh::text(axis), .world_ranks = mesh.peers(rank, {axis})};
      for (const int peer : group.world_ranks) group.nodes.push_back(node_of_rank[static_cast<size_t>(peer)]);
      const auto members = comm::transport::node_members(group);
      if (!members || !members->keep_tree) return false;
    }
    return true;
  };
  std::vector<std::string> names;
  for (int number = 0; number < mesh::kNumAxes; ++number) {
    const auto axis = static_cast<mesh::Axis>(number);
    if (has_two_levels(axis)) names.push_back(mesh::text(axis));
  }
  return joined(names);
}

}  // namespace

JobWork work_of_run(const JobPlace& place, const RunSpec& spec) {
  JobWork work;
  const int num_ranks = static_cast<int>(spec::num_world_ranks(spec));
  if (spec.run.placement == spec::kPlacedInBlocks) {
    const int ranks_of_each = num_ranks / place.num_nodes;
    for (int rank = 0; rank < num_ranks; ++rank) work.node_of_rank.push_back(rank / ranks_of_each);
  } else {
    work.node_of_rank = spec::listed_hosts(spec.run.placement, num_ranks, place.num_nodes);
  }
  work.ranks_here = static_cast<int>(std::ranges::count(work.node_of_rank, place.node));
  RunSpec equal = spec;
  equal.train.resume = "";  // node 0 decides where the run resumes from
  equal.train.overwrite = false;
  work.settings = spec::settings(equal);
  work.settings.insert(work.settings.begin(), "command = train");
  work.heartbeat_seconds = spec.run.heartbeat_seconds;
  work.progress_seconds = spec.run.progress_seconds;
  work.engine = chosen_engine(spec.run, place.num_nodes);
  work.engines = version_text(work.engine);
  return work;
}

std::string placement_text(const Job& job, const RunSpec& spec) {
  const std::vector<int>& host_of_rank = job.host_of_rank();
  const mesh::DeviceMesh mesh(spec.mesh);
  const auto num_ranks = static_cast<size_t>(mesh.num_ranks());
  std::vector<std::string> hosts;
  for (int host = 0; host <= std::ranges::max(host_of_rank); ++host) {
    std::vector<std::string> ranks, servers, words;
    int node = 0;
    for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
      if (host_of_rank[rank] != host) continue;
      (rank < num_ranks ? ranks : servers).push_back(cat(rank < num_ranks ? rank : rank - num_ranks));
      node = job.node_of_rank()[rank];
    }
    if (!ranks.empty()) words.push_back("rank " + joined(ranks));
    if (!servers.empty()) words.push_back("server " + joined(servers));
    hosts.push_back(cat(job.nodes()[static_cast<size_t>(node)].host, " has ", joined(words, " and ")));
  }
  const std::string inside = axes_of(mesh, host_of_rank, false), across = axes_of(mesh, host_of_rank, true);
  std::string all = joined(hosts, "; ");
  if (!inside.empty()) all += "; inside a host " + inside;
  if (!across.empty()) all += "; across hosts " + across;
  const auto nodes = spec::collective_nodes(host_of_rank, spec.mesh.ranks_per_node);
  if (const std::string axes = two_level_axes(mesh, nodes); !axes.empty()) all += "; two levels along " + axes;
  return all;
}

}  // namespace braid::cli
