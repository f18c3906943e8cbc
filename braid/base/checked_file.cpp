// Reads a file with pread(2) until all wanted bytes are there.
#include "braid/base/checked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

std::string pipe_content(const std::string& path, int64_t limit) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_system_fault(path, "open");
  std::string text, block(1 << 16, '\0');
  ssize_t got = 0;
  do {
    got = ::read(descriptor, block.data(), block.size());
    if (got > 0) text.append(block, 0, static_cast<size_t>(got));
  } while ((got > 0 && std::ssize(text) <= limit) || (got < 0 && errno == EINTR));
  const std::error_code fault(errno, std::generic_category());
  ::close(descriptor);
  if (got < 0) throw_system_fault(path, "read", fault);
  if (std::ssize(text) > limit)
    throw IoError(path, limit, cat("is an endless pipe; at most ", limit, " bytes are read"));
  return text;
}

}  // namespace

std::string named_content(const std::string& path, int64_t limit) {
  struct stat about {};
  const bool is_pipe = ::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode);
  return is_pipe ? pipe_content(path, limit) : file_content(path, limit);
}

std::string named_file_content(const NamedFile& file, int64_t limit) {
  try {
    return named_content(file.path, limit);
  } catch (const IoError& error) {
    throw ConfigError({{file.key, file.value, cat("cannot be read (", error.what(), ")"), ""}});
  }
}

namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

}  // namespace

// O_NONBLOCK: opening a named pipe must not wait for its writer before fstat can refuse it.
CheckedFile::CheckedFile(std::string path, Links links)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::Refused ? O_NOFOLLOW : 0))) {
  const std::error_code fault(errno, std::generic_category());
  struct stat about {};
  if (fd_ < 0 && ::stat(path_.c_str(), &about) == 0 && S_ISSOCK(about.st_mode)) {
    throw IoError(path_, -1, "is a socket, not a regular file");  // open(2) fails on a socket
  }
  if (fd_ < 0 && fault.value() == ELOOP && ::lstat(path_.c_str(), &about) == 0 && S_ISLNK(about.st_mode) &&
      links == Links::Refused) {
    throw IoError(path_, -1, "is a link, not a regular file");
  }
  if (fd_ < 0) throw IoError(path_, -1, cat("cannot open: ", fault.message()));
  const bool regular = ::fstat(fd_, &about) == 0 && S_ISREG(about.st_mode);
  if (!regular) {
    ::close(fd_);
    throw IoError(path_, -1, cat("is ", kind_of(about.st_mode), ", not a regular file"));
  }
  bytes_ = about.st_size;
}

CheckedFile::~CheckedFile() { ::close(fd_); }

void CheckedFile::read(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(path_, offset, cat("cannot read: ", std::strerror(errno)));
    if (got == 0) throw IoError(path_, offset, cat("the file ends here, ", out.size(), " bytes too early"));
    out = out.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

std::string CheckedFile::content(int64_t limit) const {
  if (bytes_ > limit) throw IoError(path_, limit, cat("has ", bytes_, " bytes; at most ", limit, " are read"));
  try {
    std::string text(static_cast<size_t>(bytes_), '\0');
    read(0, std::as_writable_bytes(std::span(text)));
    return text;
  } catch (const std::bad_alloc&) {
    throw IoError(path_, -1, cat("has ", bytes_, " bytes, for which there is no memory"));
  }
}

std::string file_content(const std::string& path, int64_t limit) {
  return CheckedFile(path, Links::Followed).content(limit);
}

}  // namespace braid
