// A Hugging Face directory as weights of braid's: config.json says the model, safetensors files hold its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/safetensors.h"
#include "braid/spec/model_spec.h"
#include "braid/weights/hf_tensors.h"

namespace braid::weights {

// The tensors of a folder in safetensors files: model.safetensors, or the files that model.safetensors.index.json
// lists. It knows names, types and shapes, and no model.
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

// Returns true if a folder has a config.json and safetensors files, and no manifest.json of braid's.
bool is_hf_directory(const std::string& folder);

class HfDirectory {
 public:
  // Reads config.json and the headers of the files. Throws one ConfigError with all that is wrong: settings of the
  // model that braid does not have, tensors that are missing, that are not the model's, of another shape or of a type
  // that holds no real numbers; IoError when a file cannot be read or is not as its format demands.
  explicit HfDirectory(std::string folder);

  const std::string& folder() const { return folder_; }
  const ModelSpec& model() const { return model_; }
  // Returns true if any weight is float64.
  bool is_wide() const;
  // Where the head is tied to the embedding, files may have it all the same: a problem when its values are others, for
  // then one of the two is wrong. Reads both.
  std::vector<Problem> problems_of_tied_head() const;
  // Fills `tensor.local` (on the host, of any real type) with the elements of braid's tensor `tensor.name` in its
  // placement, rounded to nearest even where its type is narrower. Padding is left as it is. Reads what the boxes
  // touch, in chunks of bounded size. Threads may call it at once. Throws IoError.
  void read(const ckpt::PlacedTensor& tensor) const;

 private:
  void find_tensors();
  void read_box(const HfTensor& part, const mesh::Piece& piece, const at::Tensor& local) const;

  std::string folder_;
  ModelSpec model_;
  TensorFiles files_;
  std::vector<HfTensor> tensors_;
  std::map<std::string, std::vector<const HfTensor*>> of_whole_;  // by braid's name
  std::string left_out_;                                          // of every name, in the files of a base model
};

}  // namespace braid::weights
