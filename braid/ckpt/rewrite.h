// A checkpoint written anew in other files: the same tensors, bit for bit, the same information and tokenizer. In
// memory there is never more than some rows of one tensor.
#pragma once

#include <string>

#include "braid/base/file_system.h"

namespace braid::ckpt {

struct RewriteRequest {
  enum class Tensors { All, Weights };  // Weights: none whose name has a "/"

  std::string from, to;
  int ranks = 1;  // as if so many had written it, each holding everything; 1: whole tensors in one file of each kind
  Tensors tensors = Tensors::All;
};

// `from` is read and verified, `to` published as by a save; there must be nothing of this name. Throws IoError.
void rewrite_checkpoint(const RewriteRequest& request, FileSystem& files);

}  // namespace braid::ckpt
