// Reads the config.json of a Hugging Face model as a ModelSpec. Each family has readers of its model types
// (families.h). They read the settings that determine what the model computes, and initializer_range. They ignore
// dropout and settings of the model's use: token ids, caches, types. Source: Hugging Face transformers 5,
// configuration_*.py of these types, and the "rope_scaling" of version 4.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/model/model_spec.h"

namespace braid::model {

// Returns the model in `json_text`. Adds a problem for each size that is missing or not an integer, and for each
// setting that needs a computation that braid does not have. The problem's key is "origin: json_key", or "origin:3" if
// the text is not JSON.
ModelSpec parse_hf_config(const std::string& json_text, const std::string& origin, std::vector<Problem>& problems);

// Does the same for a file. If it cannot be read, adds a problem of model.config.
ModelSpec read_hf_config(const std::string& path, std::vector<Problem>& problems);

}  // namespace braid::model
