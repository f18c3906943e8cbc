// Copies boxes that are stored in files into the tensors that a rank loads. A run is a stretch of bytes of a stored box
// that is contiguous both in the file and in the tensor's memory.
//
//   stored rows     . a a . | . b b . | . c c .        three runs; one run if whole rows are wanted
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "braid/ckpt/manifest.h"
#include "braid/mesh/placement.h"

namespace braid::ckpt {

// Returns true if no two of `boxes` overlap. REQUIRES: no box is empty. Takes O(n log n) for boxes that axis-aligned
// planes separate, as in every layout here. Boxes that no plane separates are compared pair by pair.
bool are_disjoint(std::vector<const mesh::Box*> boxes);

// Returns true if `boxes` lie inside a tensor of this shape and cover each of its elements exactly once.
bool cover_once(const std::vector<const mesh::Box*>& boxes, const mesh::Index& shape);

// One copy from a stored box to a rank's tensor. Such copies fill the boxes of a rank on any mesh, whichever mesh wrote
// the checkpoint.
//
//   two stored boxes      rows 0 1 2 3 | 4 5 6 7
//   the rank's box             . . 2 3   4 5          two copies
struct BoxCopy {
  size_t target;            // index of the target in the list of tensors
  const ManifestBox* from;  // box of the manifest to copy from
  mesh::Piece piece;        // part of the box, and its place in the target's local tensor
};

// Returns the copies that fill `tensors`. Reads no files. The copies of a target are disjoint and fill its pieces.
// REQUIRES: `manifest` has every tensor, in the same shape.
std::vector<BoxCopy> plan_reshard(const Manifest& manifest, const std::vector<PlacedTensor>& tensors);

// The rows of a stored box that a copy reads, and the bytes of each row. A row is an index of dim 0, counted from the
// box's first. A tensor without dims has one row.
struct StoredRows {
  int64_t begin = 0, end = 0, bytes = 0;
};
StoredRows rows_read(const BoxCopy& copy, ElementType type);

// The runs of one BoxCopy.
class BoxRuns {
 public:
  struct Stored {
    int64_t begin;  // byte of the file at which the box begins
    int64_t element_bytes;
  };

  // `local` is the target's local tensor, with any strides, and outlives this.
  BoxRuns(const BoxCopy& copy, const Stored& stored, const at::Tensor& local);

  // All runs lie in bytes [begin(), end()) of the file.
  int64_t begin() const { return begin_; }
  int64_t end() const { return place(num_runs_ - 1).first + run_; }
  // Copies the parts of the runs that lie in `bytes`, the file's bytes from `offset` on. May be called on any thread.
  // REQUIRES: `local` is on the host and of the file's type.
  void copy(int64_t offset, std::span<const std::byte> bytes) const;

 private:
  struct Dim {
    int64_t extent, file_step, memory_step;  // steps: bytes from one index to the next
  };

  std::pair<int64_t, std::byte*> place(int64_t number) const;

  int64_t begin_;
  std::byte* memory_;
  int64_t run_;            // bytes of each run
  std::vector<Dim> dims_;  // dims with several runs, innermost first
  int64_t num_runs_ = 1;
};

}  // namespace braid::ckpt
