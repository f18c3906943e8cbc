// The weights of a checkpoint as a directory that Hugging Face's transformers load.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/spec/model_spec.h"

namespace braid::weights {

struct ToHf {
  std::string checkpoint;               // verified; its weights are those of `model`
  ModelSpec model;                      // vocabulary resolved
  at::ScalarType saved = at::kFloat;    // of the checkpoint's weights: float32 or float64
  at::ScalarType written = at::kFloat;  // float64, float32 or bfloat16
  int64_t most_file_bytes = 0;          // of tensors in one file, where one tensor is not larger; 0: all in one
  std::string directory;                // to be written; there must be nothing, or an empty folder
};

// Writes config.json, the weights, the tokenizer's files that the checkpoint has and, where it is missing beside a
// tokenizer.json, tokenizer_config.json; under a temporary name that is renamed. Holds one tensor at a time. Returns
// sentences about what was written. Throws ConfigError about a model that no model type is, or about the place;
// IoError.
std::vector<std::string> hf_from_checkpoint(const ToHf& request, FileSystem& files);

}  // namespace braid::weights
