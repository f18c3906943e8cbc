// Writing one rank's files of a checkpoint, digesting on the way. Local: it asks no other rank, so a thread of its own
// may do it while training goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/shard_plan.h"

namespace braid::ckpt {

// The values of rows [begin, end) of a planned box, counted from its first along dim 0: contiguous, on the host, of the
// box's extents but for dim 0. A tensor without dims has one row, which is it.
using BoxRows = std::function<at::Tensor(const PlannedBox& planned, int64_t begin, int64_t end)>;

// The tensors of a rank, by name and place.
class HeldTensors {
 public:
  // Part of a box: its values where they are, and where in the box they lie.
  struct Part {
    at::Tensor values;
    mesh::Piece in_box;
  };

  // `tensors` outlive this.
  explicit HeldTensors(const std::vector<PlacedTensor>& tensors);

  // Disjoint, they fill the box, which is of the tensor `name`. check() fails where the rank has not all of it.
  std::vector<Part> parts(const std::string& name, const mesh::Box& box) const;

 private:
  std::map<std::string, std::vector<const PlacedTensor*>> by_name_;
};

// Returns rows of `tensors`, which outlive the result and hold every box that is asked for. Contiguous values are not
// copied.
BoxRows rows_of(const std::vector<PlacedTensor>& tensors);

// Writes the files of `shard` into `folder`, which is there: each written, made durable and closed. Returns what the
// manifest says of them. Throws IoError; what was written stays.
ManifestParts write_shard(const std::string& folder, const Shard& shard, const BoxRows& rows, FileSystem& files);

// One file of bytes that are no tensors, in the same way.
ManifestFile write_plain(const std::string& path, std::string_view content, FileSystem& files);

}  // namespace braid::ckpt
