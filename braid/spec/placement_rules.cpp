// The rules of ranks on several hosts.
#include "braid/base/text.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/rank_hosts.h"

namespace braid::spec {
namespace {

bool in_blocks(const View& at) { return at.spec.run.placement == kPlacedInBlocks; }

std::string share_text(const View& at) {
  const int started = at.limits.ranks_started;
  const std::string what = started > 0 ? cat("the ", started, " ranks that were started")
                                       : cat("a multiple of ", at.limits.num_hosts, " ranks, as many for each host");
  const int servers = num_server_ranks(at.spec.sync);
  return cat("must leave ", what, ", and leaves ", num_world_ranks(at.spec),
             servers > 0 ? cat(", of which ", servers, " are servers") : "");
}

}  // namespace

std::vector<CrossRule> placement_rules() {
  return {
      {{"run.placement", "mesh.pipe", "mesh.data", "mesh.context", "mesh.tensor", "sync.servers", "sync.servers_on"},
       [](const View& at) {
         const int hosts = at.limits.num_hosts;
         return hosts == 1 || in_blocks(at) ||
                !listed_hosts(at.spec.run.placement, static_cast<int>(num_world_ranks(at.spec)), hosts).empty();
       },
       [](const View& at) {
         return cat("must be \"", kPlacedInBlocks, "\" or a list of ", num_world_ranks(at.spec),
                    " hosts, one for each rank: 0 for the first, and each of 0 to ", at.limits.num_hosts - 1,
                    " at least once");
       }},
      {{"mesh.data", "mesh.pipe", "mesh.context", "mesh.tensor", "run.placement", "sync.servers", "sync.servers_on"},
       [](const View& at) {
         const int64_t ranks = num_world_ranks(at.spec);
         if (at.limits.ranks_started > 0) return ranks == at.limits.ranks_started;
         return !in_blocks(at) || ranks % at.limits.num_hosts == 0;
       },
       share_text}};
}

}  // namespace braid::spec
