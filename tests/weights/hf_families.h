// The directories in tests/weights/data, which tools/reference/hf_directory.py has written.
#pragma once

#include <string>
#include <vector>

namespace braid {

// The families that continue text.
inline std::vector<std::string> causal_hf_families() {
  return {"gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma2"};
}
inline std::vector<std::string> hf_families() {
  std::vector<std::string> all = causal_hf_families();
  all.push_back("bert");
  return all;
}

inline std::string hf_family_folder(const std::string& family) {
  return std::string(BRAID_SOURCE_DIR) + "/tests/weights/data/" + family;
}

}  // namespace braid
