// Reading a file past the page cache (O_DIRECT) where its file system takes that, through it elsewhere: for bytes that
// are read once, half of the processor's work is saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "braid/base/checked_file.h"

namespace braid {

struct FreeAligned {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeAligned>;

// Memory as disks want it: at least `bytes`, beginning and ending with a page of the processor's larger size where the
// system has those.
AlignedBytes aligned_bytes(size_t bytes);

// Threads may read at the same moment.
class UncachedFile {
 public:
  explicit UncachedFile(const CheckedFile& file);  // which outlives this
  ~UncachedFile();
  UncachedFile(const UncachedFile&) = delete;

  // As CheckedFile::read(). `out` begins aligned_bytes(out.size()), all of which may be written.
  void read(int64_t offset, std::span<std::byte> out) const;

 private:
  const CheckedFile& file_;
  int fd_;  // -1: the file system refuses
};

}  // namespace braid
