// Connects the model of a rank with the replication of its configuration.
#pragma once

#include <memory>

#include "braid/spec/run_spec.h"
#include "braid/sync/replication.h"
#include "braid/train/rank_model.h"

namespace braid::train {

// Returns the replication of `spec` for `model`; both arguments outlive it. From now on `model` notifies it of
// gradients that are ready and, if parameters are sharded, before and after each block runs. `with_servers` is that of
// the RunWorld. Collective over the world.
std::unique_ptr<sync::Replication> run_replication(const RunSpec& spec, RankModel& model,
                                                   Communicator* with_servers = nullptr);

}  // namespace braid::train
