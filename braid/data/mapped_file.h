// A whole file mapped for reading, and the pages that mapped files keep resident. A file that another process cuts
// short while it is mapped ends this one (SIGBUS): prepared data are written once and never changed in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

namespace braid::data {

class MappedFile;

// Gives the pages of all its files back whenever about `limit` bytes were touched. They stay in the system's page
// cache; the process itself stays small however much it reads. Threads may share it.
class ResidentPages {
 public:
  explicit ResidentPages(int64_t limit = int64_t{64} << 20) : limit_(limit) {}
  void touched(int64_t bytes);

 private:
  friend class MappedFile;
  const int64_t limit_;
  std::atomic<int64_t> touched_ = 0;
  std::mutex lock_;  // guards files_
  std::set<const MappedFile*> files_;
};

class MappedFile {
 public:
  // Throws IoError when `path` cannot be opened or mapped, or is no regular file. To be read in no order.
  MappedFile(std::string path, std::shared_ptr<ResidentPages> pages);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // To be called with every range before it is read.
  void touch(size_t num_bytes) const;

 private:
  friend class ResidentPages;
  void release() const;

  std::string path_;
  std::shared_ptr<ResidentPages> pages_;
  std::span<const std::byte> bytes_;
};

}  // namespace braid::data
