// A Hugging Face directory read as weights of braid's: config.json describes the model, and safetensors files hold its
// tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/model/model_spec.h"
#include "braid/weights/hf_tensors.h"
#include "braid/weights/tensor_files.h"

namespace braid::weights {

// Returns true if a folder has a config.json and safetensors files, and no manifest.json of braid's.
bool is_hf_directory(const std::string& folder);

class HfDirectory {
 public:
  // Reads config.json and the headers of the files. Throws a ConfigError with the faults of config.json, such as
  // settings of the model that braid lacks. If it has none, throws one with the faults of the tensors: missing tensors,
  // tensors that the model lacks, other shapes, and types that hold no real numbers. Throws IoError if a file cannot be
  // read or violates its format.
  explicit HfDirectory(std::string folder);

  const std::string& folder() const { return folder_; }
  const ModelSpec& model() const { return model_; }
  // Returns the tensors of the model, and those without an op (hf_carried()) that the files have.
  const std::vector<HfTensor>& tensors() const { return tensors_; }
  // Returns true if the files have braid's tensor of this name.
  bool has(const std::string& whole) const { return of_whole_.contains(whole); }
  // Returns true if any weight is float64.
  bool is_wide() const;
  // Returns the problems of tied tensors, which files may hold twice. If the head is tied to the embedding, the files
  // may still contain a head. It is a problem if its values differ from the embedding's, because then one of the two is
  // wrong. Reads both tensors.
  std::vector<Problem> problems_of_tied_head() const;
  // Fills `tensor.local` (on the host, of any real type) with the elements of braid's tensor `tensor.name` in its
  // placement. Rounds to nearest even if its type is narrower than the file's. Does not write padding. Reads only the
  // rows that the placement's boxes touch, in chunks of bounded size. Thread-safe. Throws IoError.
  void read(const ckpt::PlacedTensor& tensor) const;

 private:
  void find_tensors();
  std::string name_in_files(const std::string& name) const;
  std::vector<Problem> problems_of_copy(const std::string& copy, const HfTensor& of) const;
  void read_box(const HfTensor& part, const mesh::Piece& piece, const at::Tensor& local) const;

  std::string folder_;
  ModelSpec model_;
  TensorFiles files_;
  std::vector<HfTensor> tensors_;
  std::map<std::string, std::vector<const HfTensor*>> of_whole_;  // the parts of each tensor, by braid's name
  std::string left_out_;  // prefix that the files of a base model leave out of every name
};

}  // namespace braid::weights
