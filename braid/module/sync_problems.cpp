// Rules of single fields are those of the field list.
#include "braid/module/sync_problems.h"

#include <utility>

#include "braid/base/text.h"
#include "braid/spec/fields.h"

namespace braid {

std::vector<Problem> sync_problems(const SyncSpec& sync, const Communicator& replicas) {
  std::vector<Problem> found;
  const bool sums = sync.replication == ReplicationKind::AllReduce;
  RunSpec run;
  run.sync = sync;
  for (const Field& field : sync_fields()) {
    if (auto problem = broken_rule(field, run)) found.push_back(std::move(*problem));
  }
  const int group = sync.zero_group;
  if (group < 0 || (group > 0 && replicas.size() % group != 0)) {
    found.push_back({"sync.zero_group", cat(group), cat("must be 0 or divide the ", replicas.size(), " ranks"), "0"});
  }
  if (sync.replication == ReplicationKind::ParameterServer && replicas.rank_kind() == RankKind::Process) {
    found.push_back({"sync.replication", cat(sync.replication),
                     "needs ranks that are threads: servers are threads beside them", "all-reduce"});
  }
  if (sync.zero > 0 && (!sums || sync.compression != CompressionKind::None)) {
    found.push_back({"sync.zero", cat(sync.zero), "must be 0 unless plain sums keep the ranks in step", "0"});
  }
  if (!sums && sync.compression != CompressionKind::None) {
    found.push_back(
        {"sync.compression", cat(sync.compression), "must be none unless sums keep the ranks in step", "none"});
  }
  return found;
}

std::vector<Problem> pipelined_sync_problems(const SyncSpec& sync, const Communicator& replicas) {
  std::vector<Problem> found = sync_problems(sync, replicas);
  if (sync.zero > 1) {
    found.push_back({"sync.zero", cat(sync.zero),
                     "must be 0 or 1 in a pipeline of modules, where many microbatches add to whole gradients", "1"});
  }
  if (sync.replication == ReplicationKind::ParameterServer) {
    found.push_back({"sync.replication", cat(sync.replication),
                     "is not for a pipeline of modules, whose ranks update the parameters of their stages",
                     "all-reduce"});
  }
  return found;
}

}  // namespace braid
