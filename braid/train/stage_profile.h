// Measures the parts of a model on this machine: time and memory of one microbatch, part by part.
#pragma once

#include <vector>

#include "braid/plan/partition.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// The num_units() of the run's model, each with the median time of its forward, input-gradient and weight-gradient pass
// over a few runs, on microbatches of the run's shape and type, with `threads` threads on each of mesh.tensor ranks.
// What memory.recompute makes again counts to the input-gradient pass.
// All transformer blocks are alike, so one is measured for all, and its halves share out the time of the whole. A loss
// over a large vocabulary makes its weight gradient in the forward pass, and that is where it is counted.
//
// Bytes of activations are what the account of memory says is kept from a forward to its backward, outputs included
// (none where memory is not accounted, on devices); fixed bytes are parameters, gradients, the optimizer's states and
// masters. `spec.model.vocab` is resolved. No rank runs yet: starts ranks of its own (run.ranks), and the times are
// tensor rank 0's.
std::vector<plan::Unit> profiled_units(const RunSpec& spec, int threads);

}  // namespace braid::train
