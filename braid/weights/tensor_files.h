// The safetensors files of a Hugging Face directory.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/checked_file.h"
#include "braid/ckpt/safetensors.h"

namespace braid::weights {

inline constexpr const char* kHfWeights = "model.safetensors";
inline constexpr const char* kHfIndex = "model.safetensors.index.json";

// Returns true if a folder has one of these two files.
bool has_hf_weights(const std::string& folder);

// The tensors of a folder's safetensors files: model.safetensors, or the files that model.safetensors.index.json lists.
class TensorFiles {
 public:
  // Opens the files and reads their headers. Throws IoError if a file violates its format. Throws ConfigError (key
  // "model.safetensors.index.json") if the index names a file elsewhere, or a tensor that is not in the file it gives.
  explicit TensorFiles(const std::string& folder);

  // Returns type and shape of each tensor, by name.
  const std::map<std::string, ckpt::TensorInfo>& tensors() const { return infos_; }
  // Returns rows [begin, end) of dim 0 of a tensor, in the file's type. Returns the whole tensor if it has no dims.
  at::Tensor rows(const std::string& name, int64_t begin, int64_t end) const;

 private:
  struct Place {
    const CheckedFile* file;
    int64_t begin;  // offset in the file, in bytes
  };
  void open(const std::string& path);
  void open_listed(const std::string& folder);

  std::vector<std::unique_ptr<CheckedFile>> files_;
  std::map<std::string, ckpt::TensorInfo> infos_;
  std::map<std::string, Place> places_;
};

}  // namespace braid::weights
