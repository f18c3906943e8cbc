// One open checkpoint. It reads the boxes that it is asked for, as often as it is asked.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/box_runs.h"
#include "braid/ckpt/checkpoint_files.h"
#include "braid/ckpt/saved_checkpoints.h"

namespace braid::ckpt {

// The blocks of a checkpoint's files that some tensors need. Each block is read once, however many boxes lie in it.
class BlockReads {
 public:
  // For tensors that the manifest has in the same shape; all of it outlives this. Opens the files.
  BlockReads(CheckpointFiles& files, const Manifest& manifest, const std::vector<PlacedTensor>& tensors);

  // Compares digests, and fills nothing. Files that are one block (up to version 3) are left out when they are large.
  void verify();
  // Fills the tensors, which are on the host and of the manifest's types, and compares nothing.
  void fill();

  // 1 for each block of the checkpoint, by file, that is read here, else 0; int64.
  at::Tensor wanted() const;
  // Fills the tensors from blocks, each compared with its digest just before; large files of one block are not
  // compared. Blocks that several ranks read, by `readers` (shaped as wanted()), go through the page cache, all others
  // past it. If it throws, the tensors hold undefined values.
  void fill_compared(const at::Tensor& readers);

 private:
  struct Part {                        // of a file: a block, or so much of a large one
    int64_t number, begin, end;        // bytes of the file between which runs want some
    std::vector<const BoxRuns*> runs;  // that have bytes in it
  };

  void want(const BoxRuns& runs, const std::string& file);
  void for_each(const std::string& file,
                const std::function<void(const Part& part, std::span<std::byte> memory)>& read);

  CheckpointFiles& files_;
  const Manifest& manifest_;
  std::deque<BoxRuns> runs_;
  std::map<std::string, std::map<int64_t, Part>> wanted_;  // by file and number
  std::map<std::string, int64_t> first_;                   // of a file's parts, counted over all files
  int64_t num_parts_ = 0;
  bool fillable_ = true;  // tensors are where bytes can be copied to
};

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
