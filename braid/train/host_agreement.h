// Requires that all hosts of a run have the same data and weights at the paths in its configuration.
#pragma once

#include "braid/comm/communicator.h"
#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Collective. Throws ConfigError, the same on all ranks, about each key whose files are others to a rank than to
// rank 0: data.paths, data.tokenizer, train.init, train.resume.
void require_same_inputs(const RunSpec& spec, const data::CorpusOrigin& origin, Communicator& world);

}  // namespace braid::train
