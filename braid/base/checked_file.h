// A file read at given offsets, with every byte accounted for.
// It deliberately does not map the file: a file cut short under a mapping kills the process instead of giving an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace braid {

// Threads may read at the same moment.
class CheckedFile {
 public:
  // Throws IoError when `path` is not a regular file (links are not followed) or cannot be opened.
  explicit CheckedFile(std::string path);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when it was opened
  // Fills `out` from byte `offset` on. Throws IoError naming the first byte that is not there.
  void read(int64_t offset, std::span<std::byte> out) const;
  // All of it. Throws IoError when it is larger than `limit` bytes.
  std::string content(int64_t limit) const;

 private:
  std::string path_;
  int fd_;
  int64_t bytes_ = 0;
};

}  // namespace braid
