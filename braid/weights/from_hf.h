// A Hugging Face directory as a checkpoint of weights alone, at step 0.
#pragma once

#include <string>
#include <vector>

#include "braid/base/file_system.h"

namespace braid::weights {

struct FromHf {
  std::string directory;   // config.json, safetensors files, perhaps a tokenizer
  std::string checkpoint;  // to be written; there must be nothing, or an empty folder
};

// Writes masters of float32, or of float64 where the directory has float64; the tokenizer's files, with
// generation_config.json and the like, beside them. Holds one tensor at a time. Returns sentences about what was taken.
// Throws ConfigError with all that is wrong with the directory (hf_directory.h) or the place, IoError.
std::vector<std::string> checkpoint_from_hf(const FromHf& request, FileSystem& files);

// Returns true if a folder has a tokenizer.json or a vocab.json. Throws IoError.
bool has_tokenizer(const std::string& folder);

// Names of files beside the weights that are carried along, where they are there.
const std::vector<std::string>& carried_files();

// Throws ConfigError under `option` unless `path` is nothing or an empty folder, in a folder that is there, and the
// names beside it that a save uses are free.
void require_empty_place(const std::string& option, const std::string& path);

}  // namespace braid::weights
