// Output to a temporary file in the same folder, then rename(2). A file that cannot be replaced is overwritten.
#include "braid/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/base/file_lock.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"

namespace braid {
namespace {

// A descriptor that is closed without a check for errors.
class OutputDescriptor {
 public:
  explicit OutputDescriptor(int fd) : fd_(fd) {}
  ~OutputDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  OutputDescriptor(const OutputDescriptor&) = delete;

  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// Returns the system's message without the name of the failed call on the temporary file.
std::string reason_of(const IoError& error) {
  const size_t colon = error.why().rfind(": ");
  return colon == std::string::npos ? error.why() : error.why().substr(colon + 2);
}

// Writes `temporary` and renames it to `path`.
void write_beside(const std::string& path, const std::string& temporary, const std::string& content,
                  FileSystem& files) {
  try {
    const auto file = files.create(temporary);
    try {
      const AdvisoryLock owner(temporary, LockMode::Exclusive);
      file->append(std::as_bytes(std::span(content)));
      file->sync();
      file->close();
      files.replace(temporary, path);
    } catch (const IoError&) {
      std::error_code ignored;  // the first fault is the one to report
      std::filesystem::remove(temporary, ignored);
      throw;
    }
  } catch (const IoError& error) {
    throw IoError(path, -1, cat("cannot be written: ", reason_of(error)));
  }
  files.sync_directory(parent_folder(path));
}

bool is_open_twice(int a, int b) {
  struct stat one {};
  struct stat other {};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Opens `path` for appending. If it is the file of standard output or error, duplicates that descriptor instead: a
// second open file description has an offset of its own and would overwrite.
int opened_in_place(const std::string& path) {
  OutputDescriptor opened(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
  if (opened.get() < 0) throw_system_fault(path, "open");
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    if (is_open_twice(opened.get(), standard)) return ::fcntl(standard, F_DUPFD_CLOEXEC, 0);
  }
  return opened.release();
}

void write_all(const std::string& path, int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_fault(path, "write");
    content.remove_prefix(static_cast<size_t>(written));
  }
}

// Overwrites the file in place. Reserves the space first, so that the old content stays if the disk is full.
void overwrite(const std::string& path, std::string_view content) {
  const OutputDescriptor file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0) throw_system_fault(path, "open");
  if (!S_ISREG(about.st_mode)) throw IoError(path, -1, "is no regular file");
  const auto bytes = static_cast<off_t>(content.size());
  const int fault = bytes > about.st_size ? ::posix_fallocate(file.get(), about.st_size, bytes - about.st_size) : 0;
  if (fault != 0) {
    [[maybe_unused]] const int ignored = ::ftruncate(file.get(), about.st_size);
    throw_system_fault(path, "write", std::error_code(fault, std::generic_category()));
  }
  write_all(path, file.get(), content);
  if (::ftruncate(file.get(), bytes) != 0 || ::fsync(file.get()) != 0) throw_system_fault(path, "write");
}

// Returns true if the path links to an open descriptor: /dev/stdout, /dev/fd/3, /proc/self/fd/3.
bool names_descriptor(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::error_code fault;
  std::filesystem::path at = path;
  for (int i = 0; i < kMostLinks && !fault && is_link(at); ++i) {
    const std::string folder = parent_folder(at);
    if (resolved_path(folder).starts_with("/proc/")) return true;
    at = folder / std::filesystem::read_symlink(at, fault);
  }
  return false;
}

// Returns true if no other file can replace this one: it is a mount point, or its folder is not writable.
bool is_fixed(const std::string& path) {
  if (is_link(path) || path_kind(path) != PathKind::File) return false;
  struct statx about {};
  const bool mounted = ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &about) == 0 &&
                       (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return mounted || ::access(parent_folder(path).c_str(), W_OK | X_OK) != 0;
}

// Removes temporary files whose owners have ended. An owner holds a lock on its file, which ends with its process.
void remove_leftovers(const std::string& prefix) {
  const std::filesystem::path beside = prefix;
  try {
    for (const std::string& name : names_in(parent_folder(prefix))) {
      if (!name.starts_with(beside.filename().string())) continue;
      const std::string leftover = beside.parent_path() / name;
      const AdvisoryLock lock(leftover, LockMode::Exclusive);
      if (lock.result() == LockResult::Granted) ::unlink(leftover.c_str());
    }
  } catch (const IoError&) {
    return;  // leftovers do no harm
  }
}

}  // namespace

std::string half_written_name(const std::string& path) { return path + ".tmp"; }

void write_file(const std::string& path, const std::string& content, FileSystem& files) {
  const std::string temporary = half_written_name(path);
  files.remove_all(temporary);
  write_beside(path, temporary, content, files);
}

void write_file(const std::string& path, const std::string& content) {
  PosixFileSystem files;
  write_file(path, content, files);
}

void write_named_file(const std::string& path, const std::string& content) {
  if (is_fixed(path)) return overwrite(path, content);
  if (is_written_in_place(path)) return write_all(path, OutputDescriptor(opened_in_place(path)).get(), content);
  const std::string prefix = path + ".braid-tmp-";
  remove_leftovers(prefix);
  PosixFileSystem files;
  write_beside(path, cat(prefix, ::getpid()), content, files);
}

bool is_written_in_place(const std::string& path) {
  return path_kind(path) == PathKind::Other || names_descriptor(path) || is_fixed(path);
}

AppendedFile open_to_append(const std::string& path) {
  OutputDescriptor opened(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (opened.get() < 0) throw_system_fault(path, errno == ELOOP ? "append to a link" : "open");
  struct stat about {};
  if (::fstat(opened.get(), &about) != 0) throw_system_fault(path, "look at");
  if (!S_ISREG(about.st_mode)) throw IoError(path, -1, "is no regular file");
  AppendedFile file(::fdopen(opened.get(), "a+b"));
  if (!file) throw_system_fault(path, "open");
  opened.release();
  return file;
}

}  // namespace braid
