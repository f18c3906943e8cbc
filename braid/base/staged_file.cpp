// Whole blocks go past the cache; the rest of the file, which no disk takes by itself, through it.
#include "braid/base/staged_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "braid/base/system_fault.h"

namespace braid {
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

// Returns true if the file is now written that way.
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
      may_pass_ = false;  // the flag was taken, and blocks of this size or place are not
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

// The descriptor is gone whatever close() says, so it is not tried again.
void StagedFile::close() {
  if (held_ > 0) flush();
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) throw_system_fault(path_, "close");
}

}  // namespace braid
