// Measures this host's memory, and the disk behind a folder.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::train {

// The rate of copying tensors of one size.
struct CopySpeed {
  double bytes = 0;             // of the tensor
  double bytes_per_second = 0;  // read and written, both counted
};
template <class Pack>
void members(Pack& pack, CopySpeed& speed) {
  pack(speed.bytes, speed.bytes_per_second);
}

// While all `ranks` copy memory of `device` at the same time with the threads that they have: the mean over ranks of
// the best of a few. Unaccounted memory, of the size twice; RunError on all ranks where one has it not. Collective; the
// same on all ranks.
CopySpeed measured_copy(int64_t bytes, at::Device device, Communicator& ranks);
// Measures copies of tensors from small ones, which fit in caches, to large ones, which do not.
std::vector<CopySpeed> measured_copies(at::Device device, Communicator& ranks);

struct DiskSpeed {
  double write_bytes_per_second = 0;  // until the disk has them
  double read_bytes_per_second = 0;   // past the page cache where the file system permits
  std::string fault;                  // why it could not be measured; empty when it was
};
template <class Pack>
void members(Pack& pack, DiskSpeed& speed) {
  pack(speed.write_bytes_per_second, speed.read_bytes_per_second, speed.fault);
}

// Measures the time in which all `ranks` save almost nothing in `folder`, with the steps of a checkpoint: each creates
// a small file and waits until the disk has it; then one renames its own, and all wait for that. Returns the best of a
// few times, 0 if a rank could not. Collective; the same on all ranks.
double measured_save(const std::string& folder, Communicator& ranks);

// Writes and reads a file in `folder`, up to 128 MiB and some seconds, and removes it.
DiskSpeed measured_disk(const std::string& folder);

}  // namespace braid::train
