// The runs whose optimizer updates parameters during the backward pass (train/early_update.h).
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns true if optimizer states are on disk, and gradients become final during backward: replicas sum them then.
bool updates_early(const RunSpec& spec);

// Returns true if the run updates early and its updates depend on the gradient norm, which is known after backward.
// Then updates are speculative: they are made for gradients that are not clipped, and undone if that was wrong.
bool speculates(const RunSpec& spec);

}  // namespace braid::spec
