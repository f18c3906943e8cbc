// A file without a name in a folder, with reserved space.
#pragma once

#include <cstdint>
#include <string>

#include "braid/base/errors.h"

namespace braid::disk {

class UnnamedFile {
 public:
  // Reserves `bytes`, where the file system can. Bypasses the page cache (O_DIRECT), where it can. Throws ConfigError
  // about `key` if there is no space or the folder refuses the file.
  UnnamedFile(std::string folder, int64_t bytes, const std::string& key);
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;

  const std::string& folder() const { return folder_; }
  int64_t bytes() const { return bytes_; }
  int descriptor() const { return fd_; }
  // Returns why the page cache is used; empty if it is not.
  const std::string& cache_note() const { return cache_note_; }
  // Drops these bytes from the page cache, if it is used.
  void leave_cache(int64_t offset, int64_t bytes) const;

 private:
  std::string try_direct() const;

  std::string folder_;
  int64_t bytes_;
  int fd_;
  std::string cache_note_;
};

}  // namespace braid::disk
