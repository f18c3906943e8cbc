// The model of a rank and the way of keeping replicas in step, put together.
#pragma once

#include <memory>

#include "braid/spec/run_spec.h"
#include "braid/sync/replication.h"
#include "braid/train/rank_model.h"

namespace braid::train {

// Both outlive the result, which `model` tells from now on what is ready and which blocks run. Collective over the
// world.
std::unique_ptr<sync::Replication> run_replication(const RunSpec& spec, RankModel& model);

}  // namespace braid::train
