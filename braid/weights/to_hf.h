// Converts the weights of a checkpoint to a directory that Hugging Face's transformers can load.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/model/model_spec.h"

namespace braid::weights {

struct ToHf {
  std::string checkpoint;               // a verified checkpoint; its weights are those of `model`
  ModelSpec model;                      // REQUIRES: its vocabulary is resolved
  at::ScalarType written = at::kFloat;  // type to write: float64, float32 or bfloat16
  // Maximum bytes of tensors in one file, unless one tensor is larger; 0: one file for all.
  int64_t most_file_bytes = 0;
  std::string directory;  // the folder to write, which must not exist or be empty
};

// Writes config.json, the weights and the checkpoint's tokenizer files. Also writes a tokenizer_config.json if the
// checkpoint has a tokenizer.json without one. The directory has a temporary name until it is complete. Holds one
// tensor at a time. Returns sentences that describe the written weights and the tokenizer. Throws a ConfigError if no
// Hugging Face model type matches the model, or about the target path; throws IoError.
std::vector<std::string> hf_from_checkpoint(const ToHf& request, FileSystem& files);

}  // namespace braid::weights
