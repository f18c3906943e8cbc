// The cache of memory blocks. Size class 8 k + j holds blocks of (8 + j) 2^(k - 3) bytes: the top four bits of the
// size, rounded up.
#include "braid/param/block_cache.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace braid::param {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;

}  // namespace

at::Tensor empty_on_large_pages(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize();
  if (bytes < kLargePage || !options.device().is_cpu()) return at::empty(sizes, options);
  const size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  void* memory = std::aligned_alloc(kLargePage, whole);
  if (!memory) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  ::madvise(memory, whole, MADV_HUGEPAGE);  // only a hint: the memory is usable even if this fails
#endif
  return at::from_blob(
      memory, sizes, [](void* p) { std::free(p); }, options);
}

int BlockCache::size_class(size_t bytes) {
  const int doublings = std::bit_width(bytes) - 1;
  const size_t step = size_t{1} << (doublings - 3);
  const size_t eighths = (bytes + step - 1) / step;  // 8 .. 16
  return eighths == 16 ? 8 * (doublings + 1) : 8 * doublings + static_cast<int>(eighths - 8);
}

size_t BlockCache::class_bytes(int size_class) {
  return static_cast<size_t>(8 + size_class % 8) << (size_class / 8 - 3);
}

BlockCache::~BlockCache() { release_all(); }

void* BlockCache::allocate(size_t bytes) {
  if (bytes < kSmallestKept) return made(bytes);
  const int wanted = size_class(bytes);
  const size_t rounded = class_bytes(wanted);
  void* block = taken(wanted);
  if (block == nullptr) block = made(rounded);
  const std::scoped_lock hold(lock_);
  used_bytes_ += rounded;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  return block;
}

void BlockCache::raise_limit(int64_t by) {
  const std::scoped_lock hold(lock_);
  limit_ += by;
}

void* BlockCache::made(size_t bytes) {
  {
    const std::scoped_lock hold(lock_);
    if (limit_ > 0 && static_cast<int64_t>(used_bytes_ + kept_bytes_ + bytes) > limit_) release_all();
  }
  try {
    return c10::alloc_cpu(bytes);
  } catch (const c10::Error&) {
    const std::scoped_lock hold(lock_);
    if (kept_bytes_ == 0) throw;
    release_all();
  }
  return c10::alloc_cpu(bytes);
}

void* BlockCache::taken(int size_class) {
  const std::scoped_lock hold(lock_);
  if (kept_[size_class].empty()) return nullptr;
  void* block = kept_[size_class].back();
  kept_[size_class].pop_back();
  kept_bytes_ -= class_bytes(size_class);
  return block;
}

void BlockCache::free(void* block, size_t bytes) {
  if (bytes < kSmallestKept) return c10::free_cpu(block);
  const int of = size_class(bytes);
  const std::scoped_lock hold(lock_);
  used_bytes_ -= class_bytes(of);
  kept_bytes_ += class_bytes(of);
  kept_[of].push_back(block);
  if (kept_bytes_ > most_used_bytes_) release_all();
}

size_t BlockCache::kept_bytes() const {
  const std::scoped_lock hold(lock_);
  return kept_bytes_;
}

void BlockCache::release_all() {
  for (auto& blocks : kept_) {
    for (void* block : blocks) c10::free_cpu(block);
    blocks.clear();
  }
  kept_bytes_ = 0;
}

}  // namespace braid::param
