// An open checkpoint, from which boxes of tensors are read.
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

// The blocks of a checkpoint's files that hold a list of tensors. Each block is read once, even if several boxes lie in
// it.
class BlockReads {
 public:
  // Opens the files that hold `tensors`. The arguments and the tensors' memory outlive this. REQUIRES: the manifest has
  // the tensors in the same shape.
  BlockReads(CheckpointFiles& files, const Manifest& manifest, const std::vector<PlacedTensor>& tensors);

  // Compares the digests of the blocks, and fills nothing. Skips large files of one block (format up to version 3).
  void verify();
  // Fills the tensors without comparing digests. REQUIRES: the tensors are on the host and of the manifest's types.
  void fill();

  // Returns one element per block of the checkpoint, file by file: 1 if this object reads the block, else 0. A large
  // block has one element per kBlockBytes.
  std::vector<int64_t> wanted() const;
  // Fills the tensors, comparing each block with its digest before its bytes are copied. Large files of one block are
  // not compared. `readers` is shaped as wanted() and has the number of ranks that read each block. Blocks with several
  // readers go through the page cache, all others bypass it. If this throws, the tensors hold undefined values.
  void fill_compared(const std::vector<int64_t>& readers);

 private:
  // A part of a file: a block, or kBlockBytes of a large block.
  struct Part {
    int64_t number, begin, end;        // [begin, end) of the file has all bytes that `runs` need
    std::vector<const BoxRuns*> runs;  // runs with bytes in this part
  };

  void want(const BoxRuns& runs, const std::string& file);
  void for_each(const std::string& file,
                const std::function<void(const Part& part, std::span<std::byte> memory)>& read);

  CheckpointFiles& files_;
  const Manifest& manifest_;
  std::deque<BoxRuns> runs_;
  std::map<std::string, std::map<int64_t, Part>> wanted_;  // by file and number of the part
  std::map<std::string, int64_t> first_;                   // by file: number of its first part, counted over all files
  int64_t num_parts_ = 0;
  bool fillable_ = true;  // all tensors are on the host and of the manifest's types
};

class CheckpointReader {
 public:
  // Reads the manifest, and holds a CheckpointReading lock. Throws IoError if there is no manifest, if it violates the
  // format, or if the checkpoint is being removed.
  explicit CheckpointReader(const std::string& directory);
  CheckpointReader(const CheckpointReader&) = delete;

  const std::string& folder() const { return folder_; }  // folder that the files are in
  const Manifest& manifest() const { return manifest_; }

  // Returns a problem for each tensor whose name, shape or type differs from the manifest's.
  std::vector<Problem> differences(const std::vector<PlacedTensor>& tensors) const;

  // Compares every byte of every file with the manifest's digests. Throws IoError naming file, tensor and block.
  void verify();
  // Verifies every `parts`-th of the files that consist of one large block (format up to version 3), beginning with
  // number `part`. If each of `parts` ranks passes its own number as `part`, all such files are verified.
  void verify_large_blocks(int part, int parts);
  // Returns the reads of these tensors. Results share buffers, so only one of them may read at a time. REQUIRES: the
  // manifest has the tensors in the same shape and type.
  BlockReads reads_of(const std::vector<PlacedTensor>& tensors) { return {files_, manifest_, tensors}; }
  // Returns a box of a tensor, contiguous on the host. Compares no digests.
  at::Tensor read(const std::string& tensor, const mesh::Box& box);

 private:
  const CheckpointReading reading_;
  const std::string folder_;
  const Manifest manifest_;
  CheckpointFiles files_;
};

}  // namespace braid::ckpt
