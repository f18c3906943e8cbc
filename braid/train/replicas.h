// The way of keeping replicas in step that a configuration asks for. It makes it and does nothing else.
#pragma once

#include <memory>

#include "braid/spec/run_spec.h"
#include "braid/sync/replication.h"
#include "braid/train/rank_groups.h"

namespace braid {

// All arguments outlive the result. Collective over groups.world.
std::unique_ptr<Replication> make_replication(const RunSpec& spec, ParamStore& store, const RankGroups& groups);

}  // namespace braid
