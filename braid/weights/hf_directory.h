// A Hugging Face directory as weights of braid's: config.json says the model, safetensors files hold its tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/spec/model_spec.h"
#include "braid/weights/hf_tensors.h"
#include "braid/weights/tensor_files.h"

namespace braid::weights {

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
