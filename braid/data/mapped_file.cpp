// mmap and madvise.
#include "braid/data/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::data {
namespace {

constexpr int64_t kFaultBytes = 1 << 16;  // the kernel maps so much around a page it finds in its cache

}  // namespace

void ResidentPages::touched(int64_t bytes) {
  if (touched_.fetch_add(bytes, std::memory_order_relaxed) + bytes < limit_) return;
  touched_.store(0, std::memory_order_relaxed);
  const std::scoped_lock hold(lock_);
  for (const MappedFile* file : files_) file->release();
}

MappedFile::MappedFile(std::string path, std::shared_ptr<ResidentPages> pages)
    : path_(std::move(path)), pages_(std::move(pages)) {
  const CheckedFile file(path_, Links::Followed);
  const auto size = static_cast<size_t>(file.bytes());
  void* at = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0) : nullptr;
  if (at == MAP_FAILED) throw IoError(path_, -1, cat("cannot map: ", std::strerror(errno)));
  if (size > 0) ::madvise(at, size, MADV_RANDOM);
  bytes_ = {static_cast<const std::byte*>(at), size};
  const std::scoped_lock hold(pages_->lock_);
  pages_->files_.insert(this);
}

MappedFile::~MappedFile() {
  {
    const std::scoped_lock hold(pages_->lock_);
    pages_->files_.erase(this);
  }
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::touch(size_t num_bytes) const {
  pages_->touched((static_cast<int64_t>(num_bytes) / kFaultBytes + 1) * kFaultBytes);
}

// Threads that read at this moment find the same bytes again in the page cache.
void MappedFile::release() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

}  // namespace braid::data
