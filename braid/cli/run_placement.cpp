// Counting ranks, and neighbours along axes.
#include "braid/cli/run_placement.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/mesh/device_mesh.h"
#include "braid/spec/fields.h"

namespace braid {
namespace {

// run.placement as a list; empty where it is "blocks". Throws ConfigError.
std::vector<int> given_nodes(const RunSpec& spec, int num_nodes) {
  if (spec.run.placement == "blocks") return {};
  const int num_ranks = DeviceMesh(spec.mesh).num_ranks();
  std::vector<int> nodes;
  std::istringstream words(spec.run.placement);
  for (std::string word; std::getline(words, word, ',');) {
    const bool digits =
        !word.empty() && word.size() < 6 && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    nodes.push_back(digits ? std::stoi(word) : -1);
  }
  const bool fits = static_cast<int>(nodes.size()) == num_ranks &&
                    std::ranges::all_of(nodes, [&](int node) { return node >= 0 && node < num_nodes; }) &&
                    nodes[0] == 0 && std::set<int>(nodes.begin(), nodes.end()).size() == static_cast<size_t>(num_nodes);
  const std::string rule =
      cat("must be \"blocks\" or a list of ", num_ranks,
          " hosts, one for each rank: 0 for the first, and each of 0 to ", num_nodes - 1, " at least once");
  if (!fits)
    throw ConfigError({{"run.placement", toml_text(spec.run.placement), rule, toml_text(std::string("blocks"))}});
  return nodes;
}

// How many ranks this node starts.
int ranks_here(const JobPlace& place, const RunSpec& spec, const std::vector<int>& given) {
  const int num_ranks = DeviceMesh(spec.mesh).num_ranks();
  if (!given.empty()) return static_cast<int>(std::ranges::count(given, place.node));
  if (num_ranks % place.num_nodes == 0 && (!place.one_rank_each || num_ranks == place.num_nodes)) {
    return num_ranks / place.num_nodes;
  }
  const std::string what = place.one_rank_each
                               ? cat("the ", place.num_nodes, " ranks that ", place.launcher, " started")
                               : cat("a multiple of the number of hosts (", place.num_nodes, ")");
  throw ConfigError({{"mesh", "", cat("has ", num_ranks, " ranks, which must be ", what), ""}});
}

// Axes along which neighbours are on another host, or all on the same.
std::string axes_of(const DeviceMesh& mesh, const std::vector<int>& node_of_rank, bool across) {
  std::vector<std::string> names;
  for (int number = 0; number < kNumAxes; ++number) {
    const auto axis = static_cast<Axis>(number);
    if (mesh.size(axis) == 1) continue;
    bool crosses = false;
    for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
      for (const int peer : mesh.peers(rank, {axis})) {
        crosses |= node_of_rank[static_cast<size_t>(peer)] != node_of_rank[static_cast<size_t>(rank)];
      }
    }
    if (crosses == across) names.push_back(text(axis));
  }
  return joined(names);
}

}  // namespace

JobWork work_of_run(const JobPlace& place, const RunSpec& spec) {
  JobWork work;
  work.node_of_rank = given_nodes(spec, place.num_nodes);
  work.ranks_here = ranks_here(place, spec, work.node_of_rank);
  RunSpec equal = spec;
  equal.train.resume = "";  // node 0 says what the run goes on from
  equal.train.overwrite = false;
  work.settings = settings(equal);
  work.heartbeat_seconds = spec.run.heartbeat_seconds;
  if (spec.train.reduction == Reduction::Fast) work.sums = GlooSumOrder::Engine;
  return work;
}

std::string placement_text(const Job& job, const MeshSpec& mesh_spec) {
  const std::vector<int>& node_of_rank = job.node_of_rank();
  std::vector<std::string> hosts;
  for (int node = 0; node < job.num_nodes(); ++node) {
    std::vector<std::string> ranks;
    for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
      if (node_of_rank[rank] == node) ranks.push_back(cat(rank));
    }
    hosts.push_back(cat(job.nodes()[static_cast<size_t>(node)].host, " has rank ", joined(ranks)));
  }
  const DeviceMesh mesh(mesh_spec);
  const std::string inside = axes_of(mesh, node_of_rank, false), across = axes_of(mesh, node_of_rank, true);
  std::string all = joined(hosts, "; ");
  if (!inside.empty()) all += "; inside a host " + inside;
  if (!across.empty()) all += "; across hosts " + across;
  return all;
}

}  // namespace braid
