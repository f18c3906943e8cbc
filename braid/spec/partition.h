// Which transformer blocks a pipeline stage holds.
// It counts blocks only; what a block costs is the simulator's business.
#pragma once

#include <vector>

#include "braid/spec/run_spec.h"

namespace braid {

// Transformer blocks of each of `stages` stages; the embedding and the head come on top, in the first and the last.
// pipeline.layers when given, else as even as possible. A remainder goes to the stages after the first, in order, then
// to the first, never to the last: the last also computes the logits, and the first keeps the most activations in
// flight.
//
//   8 blocks on 3 stages: 3 3 2      6 on 4: 1 2 2 1      5 on 2: 3 2
//
// `spec` has no problems().
std::vector<int> stage_layers(const RunSpec& spec, int stages);

}  // namespace braid
