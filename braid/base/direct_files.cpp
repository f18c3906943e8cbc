// Direct I/O (O_DIRECT) for whole blocks. The rest of a file, which direct I/O cannot transfer, uses the page cache.
#include "braid/base/direct_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "braid/base/errors.h"

namespace braid {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kDiskBlock = 4096;  // bytes of the largest block that disks have

size_t rounded_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

bool is_same_file(int a, int b) {
  struct stat first {
  }, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

AlignedBytes aligned_bytes(size_t bytes) {
  const size_t whole = rounded_up(bytes, kLargePage);
  AlignedBytes memory(static_cast<std::byte*>(std::aligned_alloc(kLargePage, whole)));
  if (!memory) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  ::madvise(memory.get(), whole, MADV_HUGEPAGE);  // advice only: if it fails, the memory is usable all the same
#endif
  return memory;
}

UncachedFile::UncachedFile(const CheckedFile& file)
    : file_(file), fd_(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_DIRECT)) {
  if (fd_ < 0 || is_same_file(fd_, file.descriptor())) return;
  ::close(fd_);
  fd_ = -1;
}

UncachedFile::~UncachedFile() {
  if (fd_ >= 0) ::close(fd_);
}

// Reads directly first. Bytes that a direct read does not return, such as the end of a file or those at an unaligned
// offset, are read through the page cache.
void UncachedFile::read(int64_t offset, std::span<std::byte> out) const {
  const ssize_t got = fd_ < 0 ? 0 : ::pread(fd_, out.data(), rounded_up(out.size(), kDiskBlock), offset);
  const size_t count = std::min(out.size(), static_cast<size_t>(std::max<ssize_t>(0, got)));
  file_.read(offset + static_cast<int64_t>(count), out.subspan(count));
}

namespace {

constexpr size_t kStagedBytes = 4 << 20;
constexpr size_t kAlignment = 4096;

}  // namespace

StagedFile::StagedFile(std::string path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw_system_fault(path_, "create");
}

StagedFile::~StagedFile() {
  if (fd_ >= 0) ::close(fd_);
}

void StagedFile::append(std::span<const std::byte> bytes) {
  if (!staged_ && !bytes.empty()) {
    staged_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kStagedBytes)));
    if (!staged_) throw std::bad_alloc();
  }
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kStagedBytes - held_);
    std::memcpy(staged_.get() + held_, bytes.data(), count);
    held_ += count;
    bytes = bytes.subspan(count);
    if (held_ == kStagedBytes) flush();
  }
}

// Switches writes to `cache`. Returns true on success.
bool StagedFile::use(Cache cache) {
  if (cache == cache_) return true;
  const int flags = ::fcntl(fd_, F_GETFL);
  const int wanted = cache == Cache::Passed ? flags | O_DIRECT : flags & ~O_DIRECT;
  if (flags < 0 || ::fcntl(fd_, F_SETFL, wanted) != 0) return false;
  cache_ = cache;
  return true;
}

void StagedFile::flush() {
  const bool whole = held_ == kStagedBytes;
  if (!use(whole && may_pass_ ? Cache::Passed : Cache::Used)) {
    if (!whole) throw_system_fault(path_, "write");
    may_pass_ = false;
  }
  write({staged_.get(), std::exchange(held_, 0)});
}

void StagedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && cache_ == Cache::Passed && use(Cache::Used)) {
      may_pass_ = false;  // O_DIRECT was accepted, but not blocks of this size or alignment
      continue;
    }
    if (written < 0) throw_system_fault(path_, "write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void StagedFile::sync() {
  if (held_ > 0) flush();
  if (::fsync(fd_) != 0) throw_system_fault(path_, "make durable");
}

// Closes once: the descriptor is released even if close(2) fails.
void StagedFile::close() {
  if (held_ > 0) flush();
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) throw_system_fault(path_, "close");
}

}  // namespace braid
