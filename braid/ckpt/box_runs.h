// From boxes in files to tensors: which boxes a rank reads, and the bytes of them. A run is the part of a stored box
// that goes to a tensor's memory, as runs of bytes that are contiguous on both sides.
//
//   stored rows     . a a . | . b b . | . c c .        three runs; one where all of a row is wanted
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

// Checks that boxes make up a tensor: each lies inside it, no two overlap, and together they cover it.

// Returns true if no two of `boxes`, none of them empty, overlap. Costs n log n for boxes that planes separate, as in
// every layout here; pairs that no plane separates are compared one by one.
bool are_disjoint(std::vector<const mesh::Box*> boxes);

// Returns true if `boxes` lie inside a tensor of this shape and cover each of its elements once.
bool cover_once(const std::vector<const mesh::Box*>& boxes, const mesh::Index& shape);

// Which bytes of a checkpoint fill a rank's boxes, whatever mesh wrote them. Pure: it reads no files.
//
//   the file's box        rows 0 1 2 3 | 4 5 6 7
//   what a rank wants          . . 2 3   4 5          two copies
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

class BoxRuns {
 public:
  struct Stored {
    int64_t begin;  // byte of the file at which the box begins
    int64_t element_bytes;
  };

  // `local` is the target's, in any order of memory. It outlives this.
  BoxRuns(const BoxCopy& copy, const Stored& stored, const at::Tensor& local);

  // All runs lie in these bytes of the file.
  int64_t begin() const { return begin_; }
  int64_t end() const { return place(num_runs_ - 1).first + run_; }
  // Copies what runs have of `bytes`, which are the file's from `offset` on. `local` is on the host, of the file's
  // type. On any thread.
  void copy(int64_t offset, std::span<const std::byte> bytes) const;

 private:
  struct Dim {
    int64_t extent, file_step, memory_step;  // bytes from one to the next
  };

  std::pair<int64_t, std::byte*> place(int64_t number) const;

  int64_t begin_;
  std::byte* memory_;
  int64_t run_;            // bytes of each
  std::vector<Dim> dims_;  // that have several runs, the last first
  int64_t num_runs_ = 1;
};

}  // namespace braid::ckpt
