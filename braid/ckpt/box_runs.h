// The part of a stored box that goes to a tensor's memory, as runs of bytes that are contiguous on both sides.
//
//   stored rows     . a a . | . b b . | . c c .        three runs; one where all of a row is wanted
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "braid/ckpt/reshard.h"

namespace braid::ckpt {

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
