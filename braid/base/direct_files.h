// Large files past the page cache: StagedFile writes, UncachedFile reads. A new file is written in blocks of some MiB
// that lie in memory as the disk wants them: past the page cache (O_DIRECT) where the file system takes that, through
// it elsewhere.
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

// Reading a file past the page cache (O_DIRECT) where its file system takes that, through it elsewhere: for bytes that
// are read once, half of the processor's work is saved.
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

// Appended bytes are in the file after sync() or close(); before that, up to a block of them is held here.
class StagedFile final : public WritableFile {
 public:
  explicit StagedFile(std::string path);  // it must not exist
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
  bool may_pass_ = true;  // the file system has not refused yet
  std::unique_ptr<std::byte, Free> staged_;
  size_t held_ = 0;  // bytes in staged_
};

}  // namespace braid
