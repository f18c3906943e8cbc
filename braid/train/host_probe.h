// Measures this host's memory, and the disk that holds a folder.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

// The rate of copying tensors of one size.
struct CopySpeed {
  double bytes = 0;             // size of the tensor
  double bytes_per_second = 0;  // counts bytes read and bytes written
};
template <class Pack>
void members(Pack& pack, CopySpeed& speed) {
  pack(speed.bytes, speed.bytes_per_second);
}

// Measures copies of `bytes` of memory of `device` while all `ranks` copy at the same time, with the threads that they
// have. Takes the best of a few copies on each rank, and the mean over ranks. Allocates 2 x `bytes`, which no account
// of memory counts; throws RunError on all ranks if one rank cannot. Collective. Returns the same on all ranks.
CopySpeed measured_copy(int64_t bytes, at::Device device, Communicator& ranks);
// Measures copies of tensors of increasing size, from ones that fit in caches to ones that do not. Throws RunError as
// measured_copy() does. Collective. Returns the same on all ranks.
std::vector<CopySpeed> measured_copies(at::Device device, Communicator& ranks);

struct DiskSpeed {
  double write_bytes_per_second = 0;  // includes syncing to the disk
  double read_bytes_per_second = 0;   // bypasses the page cache if the file system permits
  std::string fault;                  // why the disk could not be measured; empty if it was
};
template <class Pack>
void members(Pack& pack, DiskSpeed& speed) {
  pack(speed.write_bytes_per_second, speed.read_bytes_per_second, speed.fault);
}

// Measures the time of a save of almost nothing by all `ranks` in `folder`, with the steps of a checkpoint. Each rank
// creates a small file and syncs it to the disk; then rank 0 renames its file, and all ranks wait for that. Returns
// seconds, the best of a few times; 0 if a rank could not write. Collective. Returns the same on all ranks.
double measured_save(const std::string& folder, Communicator& ranks);

// Measures the disk by writing and reading a file in `folder`, and removes it. The file has up to 128 MiB; this takes
// up to some seconds.
DiskSpeed measured_disk(const std::string& folder);

}  // namespace braid::train
