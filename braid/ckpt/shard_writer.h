// Writes one rank's files of a checkpoint, and digests them on the way. Does not communicate, so a background thread
// may do it while training continues.
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

// A function that returns rows [begin, end) of a planned box. Rows are counted along dim 0, from the box's first. The
// result is contiguous, on the host, and has the box's extents in all dims but dim 0. A tensor without dims has one
// row.
using BoxRows = std::function<at::Tensor(const PlannedBox& planned, int64_t begin, int64_t end)>;

// The tensors of a rank, by name and place.
class HeldTensors {
 public:
  // A part of a box: a view of its values, and its place in the box.
  struct Part {
    at::Tensor values;
    mesh::Piece in_box;
  };

  // `tensors` outlive this.
  explicit HeldTensors(const std::vector<PlacedTensor>& tensors);

  // Returns disjoint parts that fill `box` of the tensor `name`. check() fails if the rank does not hold all of the
  // box.
  std::vector<Part> parts(const std::string& name, const mesh::Box& box) const;

 private:
  std::map<std::string, std::vector<const PlacedTensor*>> by_name_;
};

// Returns a function that gives rows of `tensors`, which outlive it. Contiguous values on the host are not copied.
// REQUIRES: `tensors` hold every requested box.
BoxRows rows_of(const std::vector<PlacedTensor>& tensors);

// Writes the files of `shard` into `folder`, which exists. Each file is synced and closed. Returns the manifest's
// entries of the files. Throws IoError, and leaves what was written.
ManifestParts write_shard(const std::string& folder, const Shard& shard, const BoxRows& rows, FileSystem& files);

// Writes and syncs one file without tensors in the same way.
ManifestFile write_plain(const std::string& path, std::string_view content, FileSystem& files);

}  // namespace braid::ckpt
