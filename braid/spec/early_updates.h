// The runs whose optimizer updates parameters during the backward pass (train/early_update.h).
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns true if optimizer states are on disk, the update does not depend on the gradient norm, and the gradients that
// a rank computes are final: it has the only copy of its parameters.
bool updates_early(const RunSpec& spec);

}  // namespace braid::spec
