// A new file, written in blocks of some MiB that lie in memory as the disk wants them: past the page cache (O_DIRECT)
// where the file system takes that, through it elsewhere.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

#include "braid/base/file_system.h"

namespace braid {

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
