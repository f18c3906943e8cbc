// A pass over tensors on a disk, chunk by chunk from the last one to the first, which is the order in which a backward
// pass completes gradients. While one chunk is updated in memory, the next one is read and the one before is written:
//
//   read    3 2 1 0
//   update    3 2 1 0
//   write       3 2 1 0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "braid/param/disk_tensors.h"
#include "braid/spec/run_spec.h"

namespace braid::optim {

// A chunk in memory: elements [begin, end) of each tensor.
struct Chunk {
  int64_t begin = 0, end = 0;
  std::vector<std::byte*> memory;  // of each tensor, in the order of the pass
};

class ChunkedPass {
 public:
  // Allocates kChunksInMemory chunks of each tensor. REQUIRES: `disk` outlives this; the tensors are on it and have one
  // length and one type.
  ChunkedPass(param::DiskTensors& disk, const std::vector<at::Tensor>& flats);
  ~ChunkedPass();
  ChunkedPass(const ChunkedPass&) = delete;

  // A pass is begin(), any number of advance(), and finish(). They throw RunError if the disk fails; then some chunks
  // are updated and some are not, so the run must not go on.
  using Update = std::function<void(const Chunk&)>;  // leaves in memory what is to be written
  void begin(Update update);
  // Updates the chunks of elements from `from` on.
  void advance(int64_t from);
  // Updates all other chunks. Returns once all is written.
  void finish();

 private:
  struct Slot {
    Chunk chunk;
    std::vector<disk::Ticket> reads, writes;
  };

  void update_next();
  void begin_reading(int64_t number);
  void begin_writing(Slot& slot);
  void wait_for(std::vector<disk::Ticket>& tickets);
  std::span<std::byte> bytes_of(const Slot& slot, size_t tensor) const;

  disk::Disk& disk_;
  const int64_t length_, element_bytes_, chunk_;  // elements of a tensor, bytes of one, elements of a chunk
  std::vector<int64_t> offsets_;                  // of the tensors on the disk
  at::Tensor memory_;
  std::array<Slot, kChunksInMemory> slots_;
  Update update_;
  int64_t next_ = -1;  // number of the next chunk to update; -1: none is left
};

}  // namespace braid::optim
