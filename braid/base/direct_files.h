// Large files that bypass the page cache (O_DIRECT): StagedFile writes, UncachedFile reads. Where the file system
// refuses O_DIRECT, both use the page cache. StagedFile writes aligned blocks of 4 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "braid/base/checked_file.h"
#include "braid/base/file_system.h"

namespace braid {

struct FreeAligned {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeAligned>;

// Returns memory that is aligned for direct I/O, of at least `bytes`. It begins and ends at a boundary of 2 MiB, the
// processor's larger page size, and uses such pages if the system has them.
AlignedBytes aligned_bytes(size_t bytes);

// A file that is read with O_DIRECT if its file system takes that, else through the page cache. For bytes that are read
// once, this saves half of the processor's work. Several threads may read at once.
class UncachedFile {
 public:
  explicit UncachedFile(const CheckedFile& file);  // REQUIRES: `file` outlives this
  ~UncachedFile();
  UncachedFile(const UncachedFile&) = delete;

  // Reads as CheckedFile::read() does. REQUIRES: `out` begins where memory from aligned_bytes(out.size()) begins. The
  // read may overwrite all of that memory.
  void read(int64_t offset, std::span<std::byte> out) const;

 private:
  const CheckedFile& file_;
  int fd_;  // -1: the file system refuses O_DIRECT
};

// A new file that is written in blocks. Appended bytes are in the file after sync() or close(). Before that, up to one
// block of them is held in memory.
class StagedFile final : public WritableFile {
 public:
  explicit StagedFile(std::string path);  // throws IoError if `path` exists
  ~StagedFile() override;
  StagedFile(const StagedFile&) = delete;

  void append(std::span<const std::byte> bytes) override;
  void sync() override;
  void close() override;

 private:
  enum class Cache { Used, Passed };

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  bool use(Cache cache);
  void flush();
  void write(std::span<const std::byte> bytes);

  std::string path_;
  int fd_;
  Cache cache_ = Cache::Used;
  bool may_pass_ = true;  // the file system has not refused O_DIRECT so far
  std::unique_ptr<std::byte, Free> staged_;
  size_t held_ = 0;  // bytes in staged_
};

}  // namespace braid
