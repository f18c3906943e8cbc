// Which bytes of a checkpoint fill a rank's boxes, whatever mesh wrote them. Pure: it reads no files.
//
//   the file's box        rows 0 1 2 3 | 4 5 6 7
//   what a rank wants          . . 2 3   4 5          two copies
#pragma once

#include <cstddef>
#include <vector>

#include "braid/ckpt/manifest.h"

namespace braid::ckpt {

struct BoxCopy {
  size_t target;            // of the tensors
  const ManifestBox* from;  // of the manifest
  mesh::Piece piece;        // what of it, and where in the target's local tensor
};

// `manifest` has every tensor, in the same shape. Copies of a target are disjoint and fill its pieces.
std::vector<BoxCopy> plan_reshard(const Manifest& manifest, const std::vector<PlacedTensor>& tensors);

// The rows (indices of dim 0, counted from the box's first) that a copy reads of its box, and the bytes of each. A
// tensor without dims has one row.
struct StoredRows {
  int64_t begin = 0, end = 0, bytes = 0;
};
StoredRows rows_read(const BoxCopy& copy, ElementType type);

}  // namespace braid::ckpt
