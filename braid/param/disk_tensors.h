// 1-D tensors on a disk, one after another in one scratch space. Updates move them chunk by chunk through the Disk.
// Code that reads or writes whole tensors now and then, such as a checkpoint, uses the tensors themselves: they are
// mapped files, whose pages are the system's page cache and not memory of the rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "braid/disk/disk.h"
#include "braid/disk/mapping.h"
#include "braid/param/memory_account.h"

namespace braid::param {

// Where tensors are between their uses.
enum class Kept { InMemory, OnDisk };

// Two: there is space for the values before and after an update, so an update can be undone.
enum class Copies { One, Two };

// The space of what a rank keeps on disk: the optimizer's states with float32 masters of 16-bit weights, and the
// parameters and gradients that are Kept::OnDisk.
struct DiskSpace {
  disk::Options place;               // `bytes` is ignored: the store knows its size
  std::vector<int64_t> state_bytes;  // of each tensor of states, without masters, for kSliceAlign elements
  int64_t chunk_bytes = 0;           // of each tensor, moved at a time by updates
  Kept parameters = Kept::InMemory, gradients = Kept::InMemory;
  Copies copies = Copies::One;  // of all that updates change
  int num_microbatches = 1;     // of a rank's step; reproducible sums of gradients on disk keep some of theirs there
};

class DiskTensors : public std::enable_shared_from_this<DiskTensors> {
 public:
  // Opens a space of `bytes`. Throws ConfigError with all that is wrong with the folders.
  DiskTensors(const DiskSpace& space, int64_t bytes);
  DiskTensors(const DiskTensors&) = delete;

  // Returns a new tensor of zeros, which keeps this alive. It begins at a block of the disk, and has whole blocks for
  // itself. `category` is that of the memory which it replaces. REQUIRES: there is space left; this is in a shared_ptr.
  at::Tensor zeros(int64_t length, at::ScalarType type, MemoryCategory category);
  // Returns a new tensor as zeros() does, to be written through disk() before it is read.
  at::Tensor empty(int64_t length, at::ScalarType type, MemoryCategory category);
  // The first call takes the values of all tensors, which were written through themselves until then, as those that
  // reads are compared with. From then on they, and later tensors, are written through disk() alone. Reads all of them.
  // A disk that fails meanwhile is a signal (disk/bus_error.h).
  void begin_checks();
  // Takes the values of a tensor, which were written through itself, as those that reads are compared with from now on.
  // REQUIRES: has(flat), from its first byte on; no operation on it is under way.
  void take_written(const at::Tensor& flat);
  // Returns true if zeros() or empty() has returned the tensor.
  bool has(const at::Tensor& flat) const;
  // Returns true if the tensor is one of any DiskTensors, or a part of one.
  static bool any_has(const at::Tensor& tensor);
  // Returns the place of the tensor on disk(). REQUIRES: has(flat). A write through the tensor and one through disk()
  // see each other once the first has ended.
  int64_t offset(const at::Tensor& flat) const;
  // Returns the category of the tensor that has this byte of disk(). REQUIRES: there is one.
  MemoryCategory category_at(int64_t offset) const;
  // Exchanges the places of two tensors: each has the values of the other, at the same address. REQUIRES: has(a) and
  // has(b), from their first bytes on; they have equal sizes and categories; no operation on them is under way.
  void swap(const at::Tensor& a, const at::Tensor& b);

  // Start to read `flat` into `memory`, and to write it from there; disk().wait() ends either. The caller keeps
  // `memory`, which begins at a block (block_memory.h), until then. REQUIRES: has(flat); equal sizes, in whole blocks.
  disk::Ticket read(const at::Tensor& flat, const at::Tensor& memory);
  disk::Ticket write(const at::Tensor& flat, const at::Tensor& memory);
  // Returns the values of `flat` in new memory. Throws RunError if the disk fails. REQUIRES: as of read().
  at::Tensor loaded(const at::Tensor& flat);
  // Adds the values of `flat` to `memory`, with two chunks of them in memory at a time. As loaded().
  void add_to(const at::Tensor& memory, const at::Tensor& flat);
  // Calls change() with the values of `flat` in memory, and writes them back. As loaded().
  void change(const at::Tensor& flat, const std::function<void(const at::Tensor&)>& change);

  disk::Disk& disk() { return *disk_; }
  int64_t chunk_bytes() const { return chunk_bytes_; }
  Copies copies() const { return copies_; }

 private:
  int64_t address(const at::Tensor& flat) const;  // in the mapping

  const int64_t chunk_bytes_;
  const Copies copies_;
  std::unique_ptr<disk::Disk> disk_;
  disk::Mapping mapped_;
  int64_t used_ = 0;
  std::map<int64_t, int64_t> places_;             // of tensors on the disk, by the address of their first byte
  std::map<int64_t, MemoryCategory> categories_;  // of tensors, by the place of their first byte
  bool checks_ = false;
};

}  // namespace braid::param
