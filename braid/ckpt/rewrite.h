// Rewrites a checkpoint into other files, with the same tensors (bit for bit), metadata and tokenizer. Holds only a few
// rows of one tensor in memory.
#pragma once

#include <string>

#include "braid/base/file_system.h"

namespace braid::ckpt {

struct RewriteRequest {
  enum class Tensors { All, Weights };  // Weights: without tensors whose name has a "/"

  std::string from, to;
  // Files are cut as if this many ranks had saved, each holding everything. 1: one file of each kind, with whole
  // tensors.
  int ranks = 1;
  Tensors tensors = Tensors::All;
};

// Reads and verifies `from`, and publishes `to` as a save does. Throws IoError, also if `to` exists.
void rewrite_checkpoint(const RewriteRequest& request, FileSystem& files);

}  // namespace braid::ckpt
