// Files that are read at given offsets. Every read fills its buffer or throws. Files are not mapped: if a mapped file
// is cut short, the process is killed instead of getting an error. data/token_file.h, which maps files, also opens them
// with CheckedFile, so the rules for opening are in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace braid {

// A file that a user named, and the option or key that names it.
struct NamedFile {
  std::string key, value;
  std::string path;  // the path inside `value`
};

constexpr int64_t kMostBytesNamed = int64_t{1} << 28;

// Returns the content of a regular file or a pipe that the user named on the command line, following links. Reads a
// pipe to its end, and waits for its writers. Throws IoError as file_content() does.
std::string named_content(const std::string& path, int64_t limit);

// Like named_content(), but throws ConfigError about the key: a wrong name is the user's mistake.
std::string named_file_content(const NamedFile& file, int64_t limit = kMostBytesNamed);

enum class Links { Refused, Followed };

// An open regular file. Several threads may read it at once.
class CheckedFile {
 public:
  // Throws IoError if `path` cannot be opened or is not a regular file. Folders, pipes, devices and sockets have no end
  // to read up to.
  explicit CheckedFile(std::string path, Links links = Links::Refused);
  ~CheckedFile();
  CheckedFile(const CheckedFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // size when the file was opened
  // Returns the descriptor, for operations other than reads. It stays open as long as this object lives.
  int descriptor() const { return fd_; }
  // Fills `out` with the bytes from `offset` on. Throws IoError with the offset of the first missing byte.
  void read(int64_t offset, std::span<std::byte> out) const;
  // Returns the whole content. Throws IoError if it is larger than `limit` bytes or than free memory.
  std::string content(int64_t limit) const;

 private:
  std::string path_;
  int fd_;
  int64_t bytes_ = 0;
};

// Returns the content of a regular file, following links. Throws IoError as CheckedFile does.
std::string file_content(const std::string& path, int64_t limit);

}  // namespace braid
