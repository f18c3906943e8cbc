// A checkpoint whose values come from elsewhere, some rows of one tensor at a time. One process writes all files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/listing.h"
#include "braid/ckpt/shard_writer.h"

namespace braid::ckpt {

struct StreamedSave {
  std::string to;
  std::vector<ListedTensor> listing;  // whole tensors
  BoxRows rows;  // is called for the tensors in the order of the files, each in the order of its rows
  CheckpointInfo info;
  std::map<std::string, std::string> tokenizer_files;
  int ranks = 1;  // files are cut as if this many ranks had saved, each holding everything
};

// The listing of a whole tensor.
ListedTensor whole_tensor(const TensorInfo& info);

// Publishes the checkpoint as a save does. Throws IoError and what `rows` throws; nothing is published then.
void save_streamed(const StreamedSave& save, FileSystem& files);

}  // namespace braid::ckpt
