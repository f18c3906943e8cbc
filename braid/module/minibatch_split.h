// Splits the rows of a minibatch into microbatches, in order, and as equal as possible. If the sizes differ, the first
// microbatches have one row more.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

namespace braid::modules {

struct MinibatchSplit {
  int64_t rows = 0;  // the size of dimension 0
  int num_microbatches = 1;

  int64_t size(int micro) const { return rows / num_microbatches + (micro < rows % num_microbatches ? 1 : 0); }
  int64_t begin(int micro) const {
    return micro * (rows / num_microbatches) + std::min<int64_t>(micro, rows % num_microbatches);
  }
  // Microbatches of one kind have the same size; there are at most two kinds, and the first microbatch is of kind 0.
  int kind(int micro) const { return size(micro) == size(0) ? 0 : 1; }
  int num_kinds() const { return kind(num_microbatches - 1) + 1; }
  int first_of_kind(int kind) const { return kind == 0 ? 0 : num_microbatches - 1; }

  // Returns a copy of a microbatch's rows, which a layer may write in place.
  at::Tensor part(const at::Tensor& whole, int micro) const {
    return whole.detach().narrow(0, begin(micro), size(micro)).clone();
  }
};

}  // namespace braid::modules
