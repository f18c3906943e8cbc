// The system's file system, until a call at which it fails or the process ends.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"

namespace braid {

struct Killed {};

enum class Fault {
  Error,  // the call fails, later ones work
  Kill    // the process ends there: nothing later happens, and what was not made durable is lost
};

// Counts calls and strikes at call number `when` (from 0). All ranks share it.
class FaultyFileSystem final : public FileSystem {
 public:
  FaultyFileSystem(Fault fault, int when) : fault_(fault), when_(when) {}
  ~FaultyFileSystem() override {
    for (const auto& [id, fd] : unsynced_) ::close(fd);
  }
  int calls() const { return calls_; }
  bool struck() const { return calls_ > when_; }

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    strike(path);
    return std::make_unique<File>(*this, path);
  }
  void create_directories(const std::string& path) override { strike(path), real_.create_directories(path); }
  void sync_directory(const std::string& path) override { strike(path), real_.sync_directory(path); }
  void rename(const std::string& from, const std::string& to) override { strike(from), real_.rename(from, to); }
  void replace(const std::string& from, const std::string& to) override { strike(from), real_.replace(from, to); }
  void remove_all(const std::string& path) override { strike(path), real_.remove_all(path); }
  bool exists(const std::string& path) override {
    if (dead_) throw Killed();
    return real_.exists(path);
  }

 private:
  class File final : public WritableFile {
   public:
    File(FaultyFileSystem& files, const std::string& path)
        : files_(files), path_(path), real_(files.real_.create(path)) {
      const std::scoped_lock hold(files_.lock_);
      files_.unsynced_[path] = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    }
    void append(std::span<const std::byte> bytes) override {
      if (files_.calls() == files_.when_) real_->append(bytes.first(bytes.size() / 2));
      files_.strike(path_);
      real_->append(bytes);
    }
    void sync() override {
      files_.strike(path_);
      real_->sync();
      const std::scoped_lock hold(files_.lock_);
      ::close(files_.unsynced_.at(path_));
      files_.unsynced_.erase(path_);
    }
    void close() override {
      files_.strike(path_);
      real_->close();
    }

   private:
    FaultyFileSystem& files_;
    std::string path_;
    std::unique_ptr<WritableFile> real_;
  };

  void strike(const std::string& path) {
    const std::scoped_lock hold(lock_);
    if (dead_) throw Killed();
    if (calls_++ != when_) return;
    if (fault_ == Fault::Error) throw IoError(path, -1, "cannot write: injected");
    dead_ = true;
    for (const auto& [id, fd] : unsynced_) EXPECT_EQ(::ftruncate(fd, 0), 0);
    throw Killed();
  }

  PosixFileSystem real_;
  const Fault fault_;
  const int when_;
  std::mutex lock_;
  std::atomic<int> calls_ = 0;
  std::atomic<bool> dead_ = false;
  std::map<std::string, int> unsynced_;
};

}  // namespace braid
