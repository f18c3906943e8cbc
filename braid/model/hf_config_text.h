// Writes a ModelSpec as the config.json of a Hugging Face model: the inverse of hf_config.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/model/model_spec.h"

namespace braid::model {

// The values of config.json that are not in ModelSpec.
struct HfConfigDetails {
  std::string type = "float32";    // torch_dtype, the type of the weights
  std::optional<int> end_of_text;  // id of the end-of-text token
  bool has_carried = false;        // true if the carried tensors are written too (families.h)
};

// Returns a text that parse_hf_config() reads as the same model, except for model.vocab_multiple and model.dropout. The
// model type is the simplest that can express the model. Adds a problem if no type can. REQUIRES: `spec.vocab` is
// resolved (> 0).
std::string hf_config_text(const ModelSpec& spec, const HfConfigDetails& details, std::vector<Problem>& problems);

}  // namespace braid::model
