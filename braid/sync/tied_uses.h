// Computes the gradient of a tied parameter: the sum over its uses, once each use has been summed over the replicas.
#pragma once

#include <cstdint>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"

namespace braid::sync {

// Adds the uses of every tied parameter in the gradients that this rank owns. `tied` are the ranks that share tied
// parameters (first and last stage of one replica). If one rank has all uses, nothing is sent. In both cases the
// operands are use 0 and use 1, so the bits are the same. Returns the bytes sent, counted as in ring_bytes.h.
// Collective over `tied`. Throws CommError.
int64_t add_tied_uses(const param::ParamStore& store, Communicator& tied);

}  // namespace braid::sync
