// A cache of freed memory for the next allocation of its size class. Steps repeat the same sizes, and the system's
// allocator does not reuse large aligned blocks well. Without a cache, resident memory grows with every step under
// glibc 2.36. memory_account.h records the ranks to which memory belongs.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace braid::param {

// Returns an uninitialised contiguous tensor for memory that is read from end to end repeatedly. With small pages,
// finding the pages takes as long as reading them (bench/generation). So if a CPU tensor fills a large page, the system
// is asked for large pages; if it has none, the pages are small.
at::Tensor empty_on_large_pages(at::IntArrayRef sizes, const at::TensorOptions& options);

// Thread-safe. Blocks of at least kSmallestKept bytes are kept by size class. There are eight classes per doubling, so
// at most an eighth of a block is wasted. All kept blocks go back to the system if their bytes exceed the maximum that
// was ever in use at once, if a new block would exceed the limit together with them, or if the system has no memory.
class BlockCache {
 public:
  static constexpr size_t kSmallestKept = 64 * 1024;

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  ~BlockCache();  // returns the kept blocks to the system; callers own the blocks in use

  // Returns a block of at least `bytes` bytes, aligned to 64. Throws the errors of c10::alloc_cpu.
  void* allocate(size_t bytes);
  // Raises the limit of the bytes in use and kept, at first 0: none. Blocks in use may exceed it.
  void raise_limit(int64_t by);
  // REQUIRES: `block` was allocated with `bytes`.
  void free(void* block, size_t bytes);

  size_t kept_bytes() const;

 private:
  static constexpr int kNumClasses = 64 * 8;
  static int size_class(size_t bytes);
  static size_t class_bytes(int size_class);
  void* taken(int size_class);  // returns a kept block, or null
  void* made(size_t bytes);     // returns a new block
  void release_all();           // REQUIRES: the lock is held, or this is the destructor

  mutable std::mutex lock_;
  std::array<std::vector<void*>, kNumClasses> kept_;
  size_t kept_bytes_ = 0, used_bytes_ = 0, most_used_bytes_ = 0;
  int64_t limit_ = 0;
};

}  // namespace braid::param
