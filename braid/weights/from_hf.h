// Converts a Hugging Face directory to a checkpoint that holds only weights, at step 0.
#pragma once

#include <string>
#include <vector>

#include "braid/base/file_system.h"

namespace braid::weights {

struct FromHf {
  std::string directory;   // a folder with config.json, safetensors files and perhaps a tokenizer
  std::string checkpoint;  // the folder to write, which must not exist or be empty
};

// Writes float32 masters, or float64 masters if any weight in the directory is float64. Copies the files of the
// tokenizer, generation_config.json and the like. Holds one tensor at a time. Returns sentences that describe the model
// and the tokenizer. Throws one ConfigError with all faults of the directory (hf_directory.h) or of the target path;
// throws IoError.
std::vector<std::string> checkpoint_from_hf(const FromHf& request, FileSystem& files);

// Returns true if a folder has a tokenizer.json or a vocab.json. Throws IoError.
bool has_tokenizer(const std::string& folder);

// Returns the names of the files that are copied with the weights, if they exist.
const std::vector<std::string>& carried_files();

// Throws a ConfigError about `option` unless three conditions hold. `path` does not exist or is an empty folder; its
// parent folder exists; and the names beside it that a save uses are free.
void require_empty_place(const std::string& option, const std::string& path);

}  // namespace braid::weights
