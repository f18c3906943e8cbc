// A pass over the elements of tensors on a disk, chunk by chunk from the last one to the first, which is the order in
// which a backward pass completes gradients. Each tensor may have elements of another size. While one chunk is
// updated in memory, the next one is read and the one before is written:
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

// A chunk in memory: what each tensor has of elements [begin, end).
struct Chunk {
  int64_t begin = 0, end = 0;
  std::vector<std::byte*> memory;  // of each tensor, in the order of the pass
};

// The access of a pass to a tensor: it reads gradients, writes rounded weights, and does both with states. Backup: it
// holds the values that weights in memory had before a speculative pass.
enum class Access { Read, Write, Update, Backup };

struct PassTensor {
  at::Tensor flat;  // begins with the pass's elements
  Access access = Access::Update;
  int64_t slice_bytes = 0;             // of kSliceAlign elements; a power of two
  at::Tensor spare = {};               // for PassMode::Speculative, of what is written; like `flat`
  param::DiskTensors* disk = nullptr;  // that has `flat`, and outlives the pass; null: that of the pass
};

// InPlace: what is written replaces the values that were read. Speculative: it goes to spares, and backups are written.
// Again: as InPlace, and backups are read. Undo: updates and backups are read, nothing is written.
enum class PassMode { InPlace, Speculative, Again, Undo };

class ChunkedPass {
 public:
  // Allocates kChunksInMemory chunks of each tensor. The largest elements fill DiskTensors::chunk_bytes(), or as much
  // more as makes chunks of all tensors whole blocks. REQUIRES: `disk` outlives this; the tensors are on it, or on
  // their own disk; `num_elements` is a multiple of kSliceAlign.
  ChunkedPass(param::DiskTensors& disk, int64_t num_elements, std::vector<PassTensor> tensors);
  ~ChunkedPass();
  ChunkedPass(const ChunkedPass&) = delete;

  // A pass is begin(), any number of advance(), and finish(). They throw RunError if the disk fails; then some chunks
  // are updated and some are not, so the run must not go on.
  using Update = std::function<void(const Chunk&)>;  // leaves in memory what is to be written
  void begin(PassMode mode, Update update);
  // Updates the chunks of elements from `from` on, whose tensors of Access::Read are final.
  void advance(int64_t from);
  // Updates all other chunks. Returns once all is written.
  void finish();
  // Called after a finished speculative pass. Gives the tensors the values that it wrote.
  void keep();

 private:
  struct Transfer {
    disk::Disk* disk;
    disk::Ticket ticket;
  };
  struct Slot {
    Chunk chunk;
    std::vector<Transfer> reads, writes;
    bool lacks_what_is_read = false;  // tensors of Access::Read were not final when the chunk was read
  };

  void update_next();
  void begin_reading(int64_t number);
  void read(Slot& slot, Access access);
  void begin_writing(Slot& slot);
  static void wait_for(std::vector<Transfer>& transfers);
  param::DiskTensors& disk_of(size_t tensor) const;
  int64_t place(const Slot& slot, size_t tensor, const at::Tensor& flat) const;  // on the disk
  std::span<std::byte> bytes_of(const Slot& slot, size_t tensor) const;

  param::DiskTensors& disk_;
  const std::vector<PassTensor> tensors_;
  const int64_t length_, chunk_;  // elements of the pass, and of a chunk
  at::Tensor memory_;
  std::array<Slot, kChunksInMemory> slots_;
  PassMode mode_ = PassMode::InPlace;
  Update update_;
  int64_t next_ = -1;       // number of the next chunk to update; -1: none is left
  int64_t final_from_ = 0;  // first element whose tensors of Access::Read are final
};

}  // namespace braid::optim
