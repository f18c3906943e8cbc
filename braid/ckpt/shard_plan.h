// The plan of a save: which rank writes which box of which tensor into which file. It is a pure function of the boxes
// that all ranks hold, so all ranks compute the same plan without communicating again.
//
//   rank 0 holds   a[0:4]  b        two equal boxes are written once, by the rank
//   rank 1 holds   a[4:8]  b        that has less to write so far
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/ckpt/exchange.h"

namespace braid::ckpt {

struct PlannedBox {
  TensorInfo tensor;  // the whole tensor
  mesh::Box box;
  bool operator==(const PlannedBox&) const = default;
};

struct ShardFile {
  std::string name;                  // "model-00001-of-00002.safetensors"; without numbers if one rank writes all
  std::vector<PlannedBox> boxes;     // in the order of their bytes in the file
  std::vector<TensorEntry> entries;  // the same boxes, as entries of the file's header
};

// The files and boxes that one rank writes.
struct Shard {
  std::vector<ShardFile> files;
};

struct WorldPlan {
  struct Written {
    size_t tensor;  // index into WorldPlan::tensors
    mesh::Box box;
    int writer;
    bool operator==(const Written&) const = default;
  };
  std::vector<TensorInfo> tensors;  // sorted by name
  std::vector<Written> boxes;       // sorted by writer, tensor and place; disjoint; they cover every tensor
  int64_t bytes = 0;                // bytes of all tensors
};

// A box that several ranks hold is cut along dim 0 among them if it has more bytes than this, and more than a rank
// writes on average.
inline constexpr int64_t kSharedBytes = 32 << 20;

// Returns the plan. `listings[r]` is the packed listing of rank r (exchange.h). If several ranks hold a box, one of
// them writes it, or each writes a part (kSharedBytes). A rank's boxes of a tensor are merged if they are neighbours
// along dim 0, or if together they are the whole tensor. Takes O(n log n) time for the n boxes of all ranks. Throws
// InternalError naming a tensor that ranks describe differently, whose boxes overlap without being equal, or whose
// boxes do not cover it.
WorldPlan plan_world(const std::vector<std::string>& listings, int64_t shared_bytes = kSharedBytes);

// Returns an upper bound on the bytes of all files of a save, including headers and manifest, without the tokenizer's
// files.
int64_t bytes_on_disk(const WorldPlan& plan);

// Returns the files of `rank`. Tensors whose names have a "/" go to the optimizer's file.
Shard shard_of(const WorldPlan& plan, int rank);

}  // namespace braid::ckpt
