// A file read at given offsets, with every byte accounted for. It is not mapped: a file cut short under a mapping kills
// the process instead of giving an error. data/mapped_file.h, which maps files, opens them here too, so that the rules
// for opening are in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace braid {

enum class Links { Refused, Followed };

// Threads may read at the same moment.
class CheckedFile {
 public:
  // Throws IoError when `path` cannot be opened or is no regular file: a folder, a pipe, a device or a socket, none of
  // which has an end to be read up to.
  explicit CheckedFile(std::string path, Links links = Links::Refused);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when it was opened
  // For those who do more with it than read; open as long as this is.
  int descriptor() const { return fd_; }
  // Fills `out` from byte `offset` on. Throws IoError naming the first byte that is not there.
  void read(int64_t offset, std::span<std::byte> out) const;
  // All of it. Throws IoError when it is larger than `limit` bytes or than free memory.
  std::string content(int64_t limit) const;

 private:
  std::string path_;
  int fd_;
  int64_t bytes_ = 0;
};

// All of a file that somebody has named, through links. Throws IoError as CheckedFile does.
std::string file_content(const std::string& path, int64_t limit);

}  // namespace braid
