// Memory that moves to a disk and comes back: activations between forward and backward. The memory of a tensor is
// written once, however many views of it are kept, and read once.
//
//   const std::shared_ptr<Swapped> kept = space->out(tensor.storage());   // copied; the caller lets go of the tensor
//   ...
//   kept->start_in();                                                     // ahead of its use
//   use(kept->memory());
//   kept.reset();                                                         // frees the memory and the place on disk
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/disk/disk.h"

namespace braid::param {

class Swapped;

struct SwapOptions {
  disk::Options place;       // with `bytes`; the space chooses its depth, and checksums
  int64_t most_copied = -1;  // bytes of copies that are not written yet; -1: next_part() bounds them
  int64_t ahead = 0;         // bytes to read ahead where memory comes back in the order opposite to that of out()
};

// One thread at a time calls a space and the memory that it holds.
class SwapSpace : public std::enable_shared_from_this<SwapSpace> {
 public:
  // Throws ConfigError with all that is wrong with the folders.
  explicit SwapSpace(const SwapOptions& options);
  ~SwapSpace();
  SwapSpace(const SwapSpace&) = delete;

  // Starts to write a copy of the memory; returns null if the space has no room for it. `before`, if not null, is
  // needed after this memory. Throws RunError if the disk fails, as the methods of Swapped do. REQUIRES: memory of the
  // CPU; this is in a shared_ptr.
  std::shared_ptr<Swapped> out(const c10::Storage& memory, const std::shared_ptr<Swapped>& before = nullptr);

  // Frees the copies that were made before the last call, once they are written. A caller that calls this between the
  // parts of its work holds the copies of two parts at most.
  void next_part();
  // Frees all copies, once they are written.
  void finish();

  std::vector<std::string> notes() const { return disk_->notes(); }  // as of Disk
  disk::Disk& disk() { return *disk_; }                              // for its record
  // Bytes of all transfers, those under way included.
  int64_t bytes_written() const { return bytes_written_; }
  int64_t bytes_read() const { return bytes_read_; }

 private:
  friend class Swapped;
  struct Copy {
    disk::Ticket written;
    at::Tensor memory;
  };
  void finish_oldest();
  std::optional<int64_t> take(int64_t bytes);
  void give_back(int64_t offset, int64_t bytes);

  const SwapOptions options_;
  std::unique_ptr<disk::Disk> disk_;
  std::deque<Copy> copies_;  // oldest first
  size_t num_of_last_part_ = 0;
  int64_t bytes_copied_ = 0, bytes_written_ = 0, bytes_read_ = 0;
  std::map<int64_t, int64_t> free_;  // bytes of free places by offset; none touches the next
};

// Memory that was moved to a disk.
class Swapped {
 public:
  ~Swapped();
  Swapped(const Swapped&) = delete;

  // Returns false if start_in() would read the disk.
  bool is_in_memory() const { return memory_.defined() || !copy_.expired(); }
  // Starts to read the memory, unless it is in memory or being read. Memory whose copy is still there is not read.
  void start_in();
  // Returns the memory once no transfer uses it; the caller may change it. Starts to read SwapOptions::ahead bytes of
  // what is needed after it.
  c10::Storage memory();

 private:
  friend class SwapSpace;
  Swapped(std::shared_ptr<SwapSpace> space, int64_t offset, const at::Tensor& copy, std::weak_ptr<Swapped> before);

  const std::shared_ptr<SwapSpace> space_;
  const int64_t offset_, bytes_;                   // on disk
  c10::weak_intrusive_ptr<c10::TensorImpl> copy_;  // until it is written
  const std::weak_ptr<Swapped> before_;
  at::Tensor memory_;
  disk::Ticket writing_, reading_;
};

}  // namespace braid::param
