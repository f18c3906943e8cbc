// A second descriptor: the flag is of the descriptor, and the first also reads what lies anywhere.
#include "braid/base/uncached_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace braid {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kDiskBlock = 4096;  // the largest that disks have

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
  ::madvise(memory.get(), whole, MADV_HUGEPAGE);  // advice: whatever comes of it, the memory is there
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

// Parts that direct reads do not give, the end of a file or an unaligned place, are read through the page cache.
void UncachedFile::read(int64_t offset, std::span<std::byte> out) const {
  const ssize_t got = fd_ < 0 ? 0 : ::pread(fd_, out.data(), rounded_up(out.size(), kDiskBlock), offset);
  const size_t count = std::min(out.size(), static_cast<size_t>(std::max<ssize_t>(0, got)));
  file_.read(offset + static_cast<int64_t>(count), out.subspan(count));
}

}  // namespace braid
