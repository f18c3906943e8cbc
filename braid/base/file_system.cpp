// FileSystem by POSIX calls.
#include "braid/base/file_system.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "braid/base/direct_files.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Returns those of `path` and its parents that do not exist, the outermost last.
std::vector<fs::path> missing(fs::path path) {
  std::vector<fs::path> found;
  std::error_code code;
  if (!path.has_filename()) path = path.parent_path();
  while (!path.empty() && !fs::exists(path, code)) {
    found.push_back(path);
    path = path.parent_path();
  }
  return found;
}

}  // namespace

int64_t FileSystem::free_bytes(const std::string& folder) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) throw_system_fault(folder, "look at");
  return static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
}

std::unique_ptr<WritableFile> PosixFileSystem::create(const std::string& path) {
  return std::make_unique<StagedFile>(path);
}

void PosixFileSystem::create_directories(const std::string& path) {
  const std::vector<fs::path> made = missing(path);
  std::error_code code;
  fs::create_directories(path, code);
  if (code) throw_system_fault(path, "create", code);
  for (const fs::path& folder : made) sync_directory(parent_folder(folder));
}

void PosixFileSystem::sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw_system_fault(path, "open");
  const bool synced = ::fsync(fd) == 0;
  const std::error_code code(errno, std::generic_category());
  ::close(fd);
  if (!synced) throw_system_fault(path, "make durable", code);
}

// If the file system does not support RENAME_NOREPLACE, checks that `to` does not exist before it renames.
void PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EEXIST) throw_system_fault(to, "rename to");
  if (errno != EINVAL && errno != ENOSYS) throw_system_fault(from, cat("rename to ", to));
  if (exists(to)) throw_system_fault(to, "rename to", std::make_error_code(std::errc::file_exists));
  replace(from, to);
}

void PosixFileSystem::replace(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_system_fault(from, cat("rename to ", to));
}

void PosixFileSystem::remove_all(const std::string& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (code) throw_system_fault(path, "remove", code);
}

bool PosixFileSystem::exists(const std::string& path) {
  std::error_code code;
  const auto status = fs::symlink_status(path, code);
  if (code && status.type() != fs::file_type::not_found) throw_system_fault(path, "look at", code);
  return fs::exists(status);
}

}  // namespace braid
