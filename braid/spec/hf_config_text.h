// A ModelSpec as the config.json of a Hugging Face model: the way back from hf_config.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/model_spec.h"

namespace braid::spec {

// The values of config.json beside the model's.
struct HfConfigDetails {
  std::string type = "float32";    // of the weights
  std::optional<int> end_of_text;  // the token
};

// The text, of which parse_hf_config makes `spec` again (but for model.vocab_multiple). The model type is the plainest
// that has what the model asks for: gpt2, llama, mistral (a window, or heads of a width that llama has not), qwen2
// (qkv_bias), qwen3 (qk_norm). Adds a problem where no type has all of it. `spec.vocab` is resolved.
std::string hf_config_text(const ModelSpec& spec, const HfConfigDetails& details, std::vector<Problem>& problems);

}  // namespace braid::spec
