// The plan of a save: which rank writes which box of which tensor into which file. It is a pure function of the boxes
// that all ranks hold, so all ranks compute the same plan without communicating again.
//
//   rank 0 holds   a[0:4]  b        of two equal boxes one is written, by the rank
//   rank 1 holds   a[4:8]  b        that has less to write so far
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/ckpt/exchange.h"

namespace braid::ckpt {

struct PlannedBox {
  TensorInfo tensor;  // the whole one
  mesh::Box box;
  bool operator==(const PlannedBox&) const = default;
};

struct ShardFile {
  std::string name;                  // "model-00001-of-00002.safetensors"; without numbers where one rank writes all
  std::vector<PlannedBox> boxes;     // in the order of their bytes
  std::vector<TensorEntry> entries;  // the same boxes, as the file's header has them
};

// The files and boxes that one rank writes.
struct Shard {
  std::vector<ShardFile> files;
};

struct WorldPlan {
  struct Written {
    size_t tensor;  // of tensors
    mesh::Box box;
    int writer;
    bool operator==(const Written&) const = default;
  };
  std::vector<TensorInfo> tensors;  // by name
  std::vector<Written> boxes;       // by writer, tensor and place; disjoint, they cover every tensor
  int64_t bytes = 0;                // of all tensors
};

// A box that several ranks hold is cut along dim 0, so that they share it, where it has more bytes than this and than
// a rank writes on average.
inline constexpr int64_t kSharedBytes = 32 << 20;

// `listings[r]` is what rank r holds, packed (exchange.h). Of equal boxes one rank writes; boxes that a rank writes of
// a tensor are put together where they are neighbours along dim 0, and when they are all of it. Takes time in
// proportion to the boxes of all ranks, but for a logarithm. Throws InternalError naming a tensor that ranks describe
// differently, or whose boxes overlap without being equal, or do not cover it.
WorldPlan plan_world(const std::vector<std::string>& listings, int64_t shared_bytes = kSharedBytes);

// Returns an upper bound on the bytes of all files of a save, headers and manifest included, the tokenizer's files not.
int64_t bytes_on_disk(const WorldPlan& plan);

// The files of `rank`. Tensors whose names have a "/" go to the optimizer's file.
Shard shard_of(const WorldPlan& plan, int rank);

}  // namespace braid::ckpt
