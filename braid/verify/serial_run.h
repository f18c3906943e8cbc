// The run on one rank that a layout is compared with.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/run_spec.h"

namespace braid::verify {

// Returns `run` on a mesh of one rank: no pipeline, ZeRO, servers, offload or recomputation. Model, data, batch,
// microbatch, seed, types and optimizer stay.
RunSpec serial_of(const RunSpec& run);

// The runs that no Trainer on one rank equals but a serial program does (serial_replay.h).
//
//   Replicas   sync.replication "local-sgd" (Stich 2019, algorithm 1), "diloco" (Douillard et al. 2023, algorithm 1)
//   Stages     "pipedream" (Narayanan et al. 2019, section 3.3), "pipedream-2bw" (Narayanan et al. 2021, section 3.1)
enum class Replayed { Nothing, Replicas, Stages };
Replayed replayed(const RunSpec& run);

// Returns a problem for each setting that changes what is trained, so that no serial run has the same mathematics:
// asynchronous pipelines that are not replayed, servers that are not bulk synchronous, clipping by their workers,
// compression. Also one for train.resume.
std::vector<Problem> changed_semantics(const RunSpec& run);

}  // namespace braid::verify
