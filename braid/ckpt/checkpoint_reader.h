// One checkpoint, opened to be read from more than once. It knows no ranks: it reads the boxes it is asked for.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/ckpt/checkpoint_files.h"
#include "braid/ckpt/reading.h"
#include "braid/ckpt/reshard.h"

namespace braid {

class CheckpointReader {
 public:
  // Reads the manifest, and holds what CheckpointReading holds. Throws IoError when there is none, or it is not as the
  // format demands.
  explicit CheckpointReader(const std::string& directory);
  CheckpointReader(const CheckpointReader&) = delete;

  const std::string& folder() const { return folder_; }  // where the files are
  const Manifest& manifest() const { return manifest_; }

  // Every byte of every file, against the manifest. Throws IoError naming file, tensor and block.
  void verify();
  // The blocks in which bytes of these tensors' boxes lie; files that are one block (up to version 3) are left out when
  // they are large.
  void verify(const std::vector<PlacedTensor>& tensors);
  // Fills the tensors, which the manifest has in the same shape and type. Digests are not compared.
  void fill(const std::vector<PlacedTensor>& tensors);
  // A box of a tensor, contiguous on the host.
  at::Tensor read(const std::string& tensor, const Box& box);

 private:
  ElementType type_of(const PlacedTensor& tensor) const { return manifest_.tensors.at(tensor.name).type; }
  void open_all(const std::vector<PlacedTensor>& tensors);
  bool goes_straight(const PlacedTensor& tensor, const BoxCopy& copy) const;
  void fill(const PlacedTensor& tensor, const BoxCopy& copy);

  const CheckpointReading reading_;
  const std::string folder_;
  const Manifest manifest_;
  CheckpointFiles files_;
};

}  // namespace braid
