// Memory that a Disk reads and writes.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "braid/base/direct_files.h"
#include "braid/disk/disk.h"

namespace braid::disk {

// Returns `bytes` rounded up to whole blocks.
inline int64_t whole_blocks(int64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

// Memory of whole blocks, not initialized. From 2 MiB on it is on large pages if the system has them. Transfers of such
// memory are up to twice as fast (bench/disk), so several small chunks are better parts of one buffer.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Rounds `bytes` up to whole blocks. Throws std::bad_alloc.
  explicit AlignedBuffer(int64_t bytes) : size_(static_cast<size_t>(whole_blocks(bytes))) {
    constexpr size_t kLargePage = size_t{2} << 20;
    if (size_ == 0) return;
    memory_ = size_ >= kLargePage
                  ? aligned_bytes(size_)
                  : AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(size_t{kBlockBytes}, size_)));
    if (!memory_) throw std::bad_alloc();
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : size_(std::exchange(other.size_, 0)), memory_(std::move(other.memory_)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    memory_ = std::move(other.memory_);
    return *this;
  }

  std::byte* data() { return memory_.get(); }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {memory_.get(), size_}; }
  // Returns the first `bytes`, rounded up to whole blocks. REQUIRES: at most size().
  std::span<std::byte> first(int64_t bytes) { return this->bytes().first(static_cast<size_t>(whole_blocks(bytes))); }

 private:
  size_t size_ = 0;
  AlignedBytes memory_;
};

}  // namespace braid::disk
