// The model that model.preset or model.config describes.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/model/model_spec.h"

namespace braid::spec {

// Returns the model that `asked`.preset or `asked`.config describes, or the defaults if both are empty. The result's
// preset and config are empty. Adds a problem if both are given or the preset is unknown, and every problem of the
// config file.
ModelSpec described_model(const ModelSpec& asked, std::vector<Problem>& problems);

}  // namespace braid::spec
