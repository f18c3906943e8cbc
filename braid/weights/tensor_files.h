// The tensors of a folder in safetensors files: model.safetensors, or the files that model.safetensors.index.json
// lists. It knows names, types and shapes, and no model.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/ckpt/safetensors.h"

namespace braid::weights {

inline constexpr const char* kHfWeights = "model.safetensors";
inline constexpr const char* kHfIndex = "model.safetensors.index.json";

// Returns true if a folder has one of the two.
bool has_hf_weights(const std::string& folder);

class TensorFiles {
 public:
  // Opens the files and reads their headers. Throws IoError for a file that is not as its format demands, and
  // ConfigError (key "model.safetensors.index.json") for an index that names files elsewhere, or tensors that are not
  // where it says.
  explicit TensorFiles(const std::string& folder);

  // By name.
  const std::map<std::string, ckpt::TensorInfo>& tensors() const { return infos_; }
  // Rows [begin, end) of dim 0 of a tensor, in the file's type; all of a tensor without dims.
  at::Tensor rows(const std::string& name, int64_t begin, int64_t end) const;

 private:
  struct Place {
    const CheckedFile* file;
    int64_t begin;  // byte of the file
  };
  void open(const std::string& path);
  void open_listed(const std::string& folder);

  std::vector<std::unique_ptr<CheckedFile>> files_;
  std::map<std::string, ckpt::TensorInfo> infos_;
  std::map<std::string, Place> places_;
};

}  // namespace braid::weights
