// Creates the file, reserves its space, and finds out whether it takes direct I/O.
#include "braid/disk/unnamed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "braid/base/text.h"
#include "braid/disk/aligned_buffer.h"

namespace braid::disk {
namespace {

// Some file systems (NFS) have no O_TMPFILE. There the name exists until the next call.
int create(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = folder + "/.braid-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

// Returns 0 or errno. Where space cannot be reserved, the file gets its size alone.
int reserve(int fd, int64_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, bytes) == 0 ? 0 : errno;
  } while (result == EINTR);
  if (result == EOPNOTSUPP || result == ENOSYS) result = ::ftruncate(fd, bytes) == 0 ? 0 : errno;
  return result;
}

// Returns the alignment that direct I/O on the file wants, in bytes; 0 if the file takes none.
int64_t direct_alignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx about {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 && (about.stx_mask & STATX_DIOALIGN) != 0) {
    return std::max(about.stx_dio_mem_align, about.stx_dio_offset_align);
  }
#endif
  return kBlockBytes;  // unknown
}

}  // namespace

UnnamedFile::UnnamedFile(std::string folder, int64_t bytes, const std::string& key)
    : folder_(std::move(folder)), bytes_(whole_blocks(std::max(bytes, kBlockBytes))), fd_(create(folder_)) {
  if (fd_ < 0) {
    throw ConfigError({{key, folder_, cat("cannot hold a scratch file: ", std::strerror(errno)), ""}});
  }
  if (const int fault = reserve(fd_, bytes_); fault != 0) {
    ::close(fd_);
    throw ConfigError({{key, folder_,
                        cat("cannot reserve ", human_bytes(static_cast<double>(bytes_)),
                            " for a scratch file: ", std::strerror(fault)),
                        ""}});
  }
  if (const std::string why = try_direct(); !why.empty()) {
    cache_note_ = cat("scratch file in ", printable(folder_, 1000), ": no direct I/O (", why,
                      "); bytes go through the page cache");
  }
}

UnnamedFile::~UnnamedFile() { ::close(fd_); }

// Returns why direct I/O is not used; empty if it is. Some file systems refuse it only when a block is written.
std::string UnnamedFile::try_direct() const {
  const int64_t alignment = direct_alignment(fd_);
  if (alignment == 0) return "the file system has none";
  if (alignment > kBlockBytes) return cat("it wants blocks of ", alignment, " bytes");
  const int flags = ::fcntl(fd_, F_GETFL);
  AlignedBuffer block(kBlockBytes);
  std::memset(block.data(), 0, block.size());
  const bool taken = ::fcntl(fd_, F_SETFL, flags | O_DIRECT) == 0 &&
                     (::pwrite(fd_, block.data(), block.size(), 0) >= 0 || errno != EINVAL);
  if (taken) return "";
  const std::string why = std::strerror(errno);
  ::fcntl(fd_, F_SETFL, flags);
  return why;
}

// Dirty pages stay in the cache until they are written; this starts that.
void UnnamedFile::leave_cache(int64_t offset, int64_t bytes) const {
  if (!cache_note_.empty()) ::posix_fadvise(fd_, offset, bytes, POSIX_FADV_DONTNEED);
}

}  // namespace braid::disk
