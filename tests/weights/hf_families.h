// The directories in tests/weights/data, which tools/reference/hf_directory.py has written.
#pragma once

#include <string>
#include <vector>

namespace braid {

inline std::vector<std::string> hf_families() {
  return {"gpt2", "llama", "mistral", "qwen2", "qwen3", "bert", "gemma2"};
}

inline std::string hf_family_folder(const std::string& family) {
  return std::string(BRAID_SOURCE_DIR) + "/tests/weights/data/" + family;
}

}  // namespace braid
