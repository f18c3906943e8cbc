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
  return cat("must leave ", what, ", and leaves ", num_ranks(at.spec.mesh));
}

}  // namespace

std::vector<CrossRule> placement_rules() {
  return {{{"run.placement", "mesh.pipe", "mesh.data", "mesh.tensor"},
           [](const View& at) {
             const int hosts = at.limits.num_hosts;
             return hosts == 1 || in_blocks(at) ||
                    !listed_hosts(at.spec.run.placement, static_cast<int>(num_ranks(at.spec.mesh)), hosts).empty();
           },
           [](const View& at) {
             return cat("must be \"", kPlacedInBlocks, "\" or a list of ", num_ranks(at.spec.mesh),
                        " hosts, one for each rank: 0 for the first, and each of 0 to ", at.limits.num_hosts - 1,
                        " at least once");
           }},
          {{"mesh.data", "mesh.pipe", "mesh.tensor", "run.placement"},
           [](const View& at) {
             const int64_t ranks = num_ranks(at.spec.mesh);
             if (at.limits.ranks_started > 0) return ranks == at.limits.ranks_started;
             return !in_blocks(at) || ranks % at.limits.num_hosts == 0;
           },
           share_text}};
}

}  // namespace braid::spec
