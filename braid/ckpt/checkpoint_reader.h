// One open checkpoint. It reads the boxes that it is asked for, as often as it is asked.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/block_reads.h"
#include "braid/ckpt/checkpoint_files.h"
#include "braid/ckpt/reading.h"

namespace braid::ckpt {

class CheckpointReader {
 public:
  // Reads the manifest, and holds what CheckpointReading holds. Throws IoError when there is none, or it is not as the
  // format demands.
  explicit CheckpointReader(const std::string& directory);
  CheckpointReader(const CheckpointReader&) = delete;

  const std::string& folder() const { return folder_; }  // where the files are
  const Manifest& manifest() const { return manifest_; }

  // Returns where the names, shapes and types of these tensors differ from the manifest's.
  std::vector<Problem> differences(const std::vector<PlacedTensor>& tensors) const;

  // Every byte of every file, against the manifest. Throws IoError naming file, tensor and block.
  void verify();
  // Verifies every `parts`-th file of one large block (format up to version 3), beginning with number `part`. With one
  // `part` for each rank all files are verified.
  void verify_large_blocks(int part, int parts);
  // Returns the reads of these tensors. REQUIRES: the manifest has them in the same shape and type. One reads at a
  // time.
  BlockReads reads_of(const std::vector<PlacedTensor>& tensors) { return {files_, manifest_, tensors}; }
  // A box of a tensor, contiguous on the host.
  at::Tensor read(const std::string& tensor, const mesh::Box& box);

 private:
  const CheckpointReading reading_;
  const std::string folder_;
  const Manifest manifest_;
  CheckpointFiles files_;
};

}  // namespace braid::ckpt
