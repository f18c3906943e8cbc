// Checks what a ModulePipeline is made of.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/module_pipeline.h"
#include "braid/module/stage_plan.h"
#include "braid/schedule/schedule.h"

namespace braid::modules {

// Collective over `pipe`. Returns the stages of `schedule`, by number. Throws ConfigError with all problems of layers
// and options, the same on all ranks. Ranks that are threads share the modules, so no rank returns before all have
// checked them.
std::vector<StagePlan> checked_plan(const LayerList& layers, const Schedule& schedule,
                                    const ModulePipeline::Options& options, Communicator& pipe);

}  // namespace braid::modules
