// One number of each rank, combined over all of them.
#pragma once

#include "braid/comm/communicator.h"

namespace braid::train {

// The same on all ranks. Blocks. Collective.
double all_reduced(double value, ReduceOp op, Communicator& ranks);

}  // namespace braid::train
