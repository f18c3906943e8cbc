// The gradient of a tied parameter: the sum over its uses, once each use has been summed over the replicas.
#pragma once

#include <cstdint>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"

namespace braid::sync {

// Adds the uses of every tied parameter in the gradients that this rank owns. `tied` are the ranks that share tied
// parameters (first and last stage of one replica); where a rank makes all uses itself, nothing is sent. Both ways add
// the same two operands, use 0 and use 1, so the bits are the same. Returns the bytes sent, counted as in
// node_groups.h. Collective over `tied`; throws CommError.
int64_t add_tied_uses(const param::ParamStore& store, Communicator& tied);

}  // namespace braid::sync
