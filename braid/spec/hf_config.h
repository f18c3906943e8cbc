// The config.json of a Hugging Face model as a ModelSpec: model_type "gpt2", "llama", "mistral", "qwen2", "qwen3".
// It reads what the model computes; settings of its training (dropout) and of its use (token numbers, caches, types)
// are left alone. Source: Hugging Face transformers 5, configuration_*.py of these types, and the "rope_scaling" of
// version 4.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// The model in `json_text`. Adds every problem, its key "origin: json_key", or "origin:3" for text that is no JSON:
// sizes that are missing or no integers, and settings that ask for a computation we do not have.
ModelSpec parse_hf_config(const std::string& json_text, const std::string& origin, std::vector<Problem>& problems);

// The same for a file. One that cannot be read is a problem of model.config.
ModelSpec read_hf_config(const std::string& path, std::vector<Problem>& problems);

}  // namespace braid::spec
