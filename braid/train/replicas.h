// The way of keeping replicas in step that a configuration asks for. It makes it and does nothing else.
#pragma once

#include <memory>

#include "braid/spec/run_spec.h"
#include "braid/sync/replication.h"
#include "braid/train/stage_model.h"

namespace braid {

// Both outlive the result, which `model` tells from now on what is ready and which blocks run. Collective over the
// world.
std::unique_ptr<Replication> make_replication(const RunSpec& spec, StageModel& model);

}  // namespace braid
