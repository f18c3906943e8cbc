// The advice is given before anything is written: a page is large from its first touch or, perhaps, never.
#include "braid/param/large_pages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

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
  ::madvise(memory, whole, MADV_HUGEPAGE);  // advice: whatever comes of it, the memory is there
#endif
  return at::from_blob(
      memory, sizes, [](void* p) { std::free(p); }, options);
}

}  // namespace braid::param
