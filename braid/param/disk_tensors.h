// 1-D tensors on a disk, one after another in one scratch space. Updates move them chunk by chunk through the Disk.
// Code that reads or writes whole tensors now and then, such as a checkpoint, uses the tensors themselves: they are
// mapped files, whose pages are the system's page cache and not memory of the rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "braid/disk/disk.h"
#include "braid/disk/mapping.h"

namespace braid::param {

// The space of a rank's optimizer states on disk.
struct DiskSpace {
  disk::Options place;      // `bytes` is ignored: the store knows its size
  int num_states = 0;       // states of an element, without its master
  int64_t chunk_bytes = 0;  // of each tensor, moved at a time
};

class DiskTensors : public std::enable_shared_from_this<DiskTensors> {
 public:
  // Opens a space of `bytes`. Throws ConfigError with all that is wrong with the folders.
  DiskTensors(const DiskSpace& space, int64_t bytes);
  DiskTensors(const DiskTensors&) = delete;

  // Returns a new tensor of zeros, which keeps this alive. REQUIRES: there is space left; this is in a shared_ptr;
  // `length` elements are whole blocks of the disk.
  at::Tensor zeros(int64_t length, at::ScalarType type);
  // Returns true if zeros() has returned the tensor.
  bool has(const at::Tensor& flat) const;
  // Returns the place of the tensor on disk(). REQUIRES: has(flat). A write through the tensor and one through disk()
  // see each other once the first has ended.
  int64_t offset(const at::Tensor& flat) const;
  disk::Disk& disk() { return *disk_; }
  int64_t chunk_bytes() const { return chunk_bytes_; }

 private:
  const int64_t chunk_bytes_;
  std::unique_ptr<disk::Disk> disk_;
  disk::Mapping mapped_;
  int64_t used_ = 0;
};

}  // namespace braid::param
