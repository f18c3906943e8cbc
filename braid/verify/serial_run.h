// The run on one rank that a layout is compared with.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/run_spec.h"

namespace braid::verify {

// Returns `run` on a mesh of one rank: no pipeline, ZeRO, servers, offload or recomputation. Model, data, batch,
// microbatch, seed, types and optimizer stay.
RunSpec serial_of(const RunSpec& run);

// Returns a problem for each setting that changes what is trained, so that no serial run has the same mathematics:
// asynchronous pipelines, local SGD, DiLoCo, servers that are not bulk synchronous, clipping by their workers,
// compression. Also one for train.resume.
std::vector<Problem> changed_semantics(const RunSpec& run);

}  // namespace braid::verify
