// The residuals of error feedback, in one buffer with the offsets of the flat gradients.
#include "braid/sync/reducers/codec.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::sync {

void ErrorFeedback::plan(const GradLayout& layout) {
  int64_t size = 0;
  for (const BucketShape& bucket : layout.buckets) size = std::max(size, bucket.end);
  if (!flat_.defined()) {
    const param::MemoryScope scope(param::MemoryCategory::Communication);
    flat_ = at::zeros({size}, layout.options);
  }
  check(flat_.numel() == size, "every plan of a reducer has the same slices");
}

at::Tensor ErrorFeedback::of(const GradSlice& slice) const {
  int64_t count = 1;
  for (const int64_t extent : slice.shape) count *= extent;
  return flat_.narrow(0, slice.begin, count).view(slice.shape);
}

}  // namespace braid::sync
