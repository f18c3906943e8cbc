// A temporary file in the same folder, then rename(2).
#include "braid/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/system_fault.h"
#include "braid/base/text.h"

namespace braid {
namespace {

// Closes a descriptor without a check.
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

// The system's words, without the call on the temporary file that met them.
std::string reason_of(const IoError& error) {
  const size_t colon = error.why().rfind(": ");
  return colon == std::string::npos ? error.why() : error.why().substr(colon + 2);
}

// Writes `temporary` and gives it the place of `path`.
void write_beside(const std::string& path, const std::string& temporary, const std::string& content,
                  FileSystem& files) {
  try {
    const auto file = files.create(temporary);
    try {
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

// Standard output keeps its own offset: a second description of the same file would write over it.
int opened_in_place(const std::string& path) {
  OutputDescriptor opened(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
  if (opened.get() < 0) throw_system_fault(path, "open");
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    if (is_open_twice(opened.get(), standard)) return ::fcntl(standard, F_DUPFD_CLOEXEC, 0);
  }
  return opened.release();
}

void write_in_place(const std::string& path, std::string_view content) {
  const OutputDescriptor file(opened_in_place(path));
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_fault(path, "write");
    content.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void write_file(const std::string& path, const std::string& content, FileSystem& files) {
  const std::string temporary = path + ".tmp";
  files.remove_all(temporary);
  write_beside(path, temporary, content, files);
}

void write_file(const std::string& path, const std::string& content) {
  PosixFileSystem files;
  write_file(path, content, files);
}

void write_named_file(const std::string& path, const std::string& content) {
  if (is_written_in_place(path)) return write_in_place(path, content);
  PosixFileSystem files;
  write_beside(path, cat(path, ".tmp-", ::getpid()), content, files);
}

bool is_written_in_place(const std::string& path) {
  const std::string name = std::filesystem::absolute(path).lexically_normal();
  if (name.starts_with("/dev/") || name.starts_with("/proc/")) return path_kind(path) != PathKind::Nothing;
  return path_kind(path) == PathKind::Other;
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
