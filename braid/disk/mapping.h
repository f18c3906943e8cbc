// The whole space of a Disk as memory, for code that reads or writes it now and then. Its pages are in the page cache.
// A write through the mapping and one through the Disk see each other once the first has ended; a Disk with checksums
// does not know what was written through the mapping, so no operation may have written those bytes before
// (Disk::record_mapped).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "braid/disk/disk.h"

namespace braid::disk {

class Mapping {
 public:
  // Maps the first `bytes` of `disk`, a multiple of kBlockBytes. Throws RunError.
  Mapping(Disk& disk, int64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace braid::disk
