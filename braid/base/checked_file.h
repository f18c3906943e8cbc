// A file read at given offsets, with every byte accounted for. It is not mapped: a file cut short under a mapping kills
// the process instead of giving an error. data/token_file.h, which maps files, opens them here too, so that the rules
// for opening are in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace braid {

// Reads whole what a user has named: a file, or a pipe that is read once.

// A file with the option or key that named it.
struct NamedFile {
  std::string key, value;
  std::string path;  // in the value
};

constexpr int64_t kMostBytesNamed = int64_t{1} << 28;

// All of a file or a pipe, through links: what a user names on the command line and the program reads once. Waits for
// the writers of a pipe. Throws IoError as file_content() does.
std::string named_content(const std::string& path, int64_t limit);

// The same; throws ConfigError about the key instead, since a wrong name is the user's mistake.
std::string named_file_content(const NamedFile& file, int64_t limit = kMostBytesNamed);

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
