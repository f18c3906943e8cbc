// A file system for a process that is killed at one of its calls: nothing later happens, and what was not made durable
// is lost. Nothing waits for a disk.
#pragma once

#include <filesystem>
#include <map>

#include "braid/base/file_system.h"

namespace braid {

struct Killed {};

class DyingFileSystem final : public FileSystem {
 public:
  // Dies at call number `when`, from 0; never when it is negative.
  explicit DyingFileSystem(int when) : when_(when) {}

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    strike();
    auto file = std::make_unique<File>(*this, path);
    durable_[path] = false;
    return file;
  }
  void create_directories(const std::string& path) override { strike(), real_.create_directories(path); }
  void sync_directory(const std::string&) override { strike(); }
  void rename(const std::string& from, const std::string& to) override {
    strike(), real_.rename(from, to), moved(from, to);
  }
  void replace(const std::string& from, const std::string& to) override {
    strike(), real_.replace(from, to), moved(from, to);
  }
  void remove_all(const std::string& path) override {
    strike();
    real_.remove_all(path);
    durable_.erase(path);
  }
  bool exists(const std::string& path) override { return real_.exists(path); }

 private:
  class File final : public WritableFile {
   public:
    File(DyingFileSystem& files, const std::string& path)
        : files_(files), path_(path), real_(files.real_.create(path)) {}
    void append(std::span<const std::byte> bytes) override {
      if (files_.calls_ == files_.when_) real_->append(bytes.first(bytes.size() / 2));
      files_.strike();
      real_->append(bytes);
    }
    void sync() override {
      files_.strike();
      files_.durable_[path_] = true;
    }
    void close() override {
      files_.strike();
      real_->close();
    }

   private:
    DyingFileSystem& files_;
    std::string path_;
    std::unique_ptr<WritableFile> real_;
  };

  void moved(const std::string& from, const std::string& to) {
    durable_[to] = durable_[from];
    durable_.erase(from);
  }
  void strike() {
    if (calls_ > when_ && when_ >= 0) throw Killed();
    if (calls_++ != when_) return;
    for (const auto& [path, durable] : durable_) {
      if (!durable && std::filesystem::exists(path)) std::filesystem::resize_file(path, 0);
    }
    throw Killed();
  }

  PosixFileSystem real_;
  const int when_;
  int calls_ = 0;
  std::map<std::string, bool> durable_;
};

}  // namespace braid
