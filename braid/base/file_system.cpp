// The file system of POSIX.
#include "braid/base/file_system.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* action, std::error_code code) {
  std::string why = cat("cannot ", action, ": ", code.message());
  struct statvfs space {};
  const std::string folder = fs::path(path).parent_path().string();
  if (code == std::errc::no_space_on_device && ::statvfs(folder.empty() ? "." : folder.c_str(), &space) == 0) {
    why += cat(" (", human_bytes(static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize)), " free)");
  }
  throw IoError(path, -1, why);
}

[[noreturn]] void fail(const std::string& path, const char* action) {
  fail(path, action, std::error_code(errno, std::generic_category()));
}

class PosixFile final : public WritableFile {
 public:
  explicit PosixFile(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(path_, "create");
  }
  ~PosixFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  void append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, "write");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  void sync() override {
    if (::fsync(fd_) != 0) fail(path_, "make durable");
  }
  // The descriptor is gone whatever close() says, so it is not tried again.
  void close() override {
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) fail(path_, "close");
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace

std::unique_ptr<WritableFile> PosixFileSystem::create(const std::string& path) {
  return std::make_unique<PosixFile>(path);
}

void PosixFileSystem::create_directories(const std::string& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) fail(path, "create", code);
}

void PosixFileSystem::sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(path, "open");
  const bool synced = ::fsync(fd) == 0;
  const std::error_code code(errno, std::generic_category());
  ::close(fd);
  if (!synced) fail(path, "make durable", code);
}

void PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (exists(to)) fail(to, "rename to", std::make_error_code(std::errc::file_exists));
  replace(from, to);
}

void PosixFileSystem::replace(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(from, cat("rename to ", to).c_str());
}

void PosixFileSystem::remove_all(const std::string& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) fail(path, "remove", code);
}

bool PosixFileSystem::exists(const std::string& path) {
  std::error_code code;
  const auto status = fs::symlink_status(path, code);
  if (code && status.type() != fs::file_type::not_found) fail(path, "look at", code);
  return fs::exists(status);
}

}  // namespace braid
