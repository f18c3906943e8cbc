// Freed memory kept for the next allocation of its size class. Steps repeat the same sizes, and the system's allocator
// does not reuse large aligned blocks well: without a cache, resident memory grows with every step under glibc 2.36. It
// knows sizes and not whose memory it is (memory_account.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

namespace braid::param {

// Memory that is read from end to end again and again, on pages of the processor's larger size: with small ones,
// finding them takes as long as reading them (bench/generation).

// Contiguous CPU memory without values. The system is asked for large pages where the tensor fills one; where it has
// none, they are small.
at::Tensor empty_on_large_pages(at::IntArrayRef sizes, const at::TensorOptions& options);

// Any thread. Blocks of at least kSmallestKept bytes are kept by size class, eight classes per doubling, so that at
// most an eighth of a block is waste. What is kept never exceeds the most that was in use at once: beyond it, kept
// blocks go back to the system.
class BlockCache {
 public:
  static constexpr size_t kSmallestKept = 64 * 1024;

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  ~BlockCache();  // returns what is kept; blocks in use are the callers'

  // At least `bytes`, aligned to 64. Throws what c10::alloc_cpu throws.
  void* allocate(size_t bytes);
  // `bytes` as it was allocated with.
  void free(void* block, size_t bytes);

  size_t kept_bytes() const;

 private:
  static constexpr int kNumClasses = 64 * 8;
  static int size_class(size_t bytes);
  static size_t class_bytes(int size_class);
  void* taken(int size_class);  // a kept block, or null
  void release_all();           // the lock is held

  mutable std::mutex lock_;
  std::array<std::vector<void*>, kNumClasses> kept_;
  size_t kept_bytes_ = 0, used_bytes_ = 0, most_used_bytes_ = 0;
};

}  // namespace braid::param
