// The file system calls of a save, behind an interface: a test can fail or stop a save at any call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace braid {

// A new file. Every method throws IoError with the path and the system's message. Appended bytes may be held back until
// sync() or close(). The destructor closes the file without a check, and drops bytes that are held back.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;  // fsync
  virtual void close() = 0;
};

// A file system. Every method throws IoError with the path and the system's message; if the disk is full, also with the
// free space.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;  // throws if `path` exists
  // Creates a folder, which may exist, and its parents. New folders are durable.
  virtual void create_directories(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;  // fsync: makes the names in the folder durable
  virtual void rename(const std::string& from, const std::string& to) = 0;   // `to` must not exist
  virtual void replace(const std::string& from, const std::string& to) = 0;  // replaces `to` atomically
  virtual void remove_all(const std::string& path) = 0;                      // does nothing if `path` does not exist
  virtual bool exists(const std::string& path) = 0;
  // Returns the bytes that this user may still write to the folder's disk.
  virtual int64_t free_bytes(const std::string& folder);
};

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  void create_directories(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void replace(const std::string& from, const std::string& to) override;
  void remove_all(const std::string& path) override;
  bool exists(const std::string& path) override;
};

}  // namespace braid
