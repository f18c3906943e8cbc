// Heads in groups of a key head and its query heads, each in memory of its own. The attention of a group then reads the
// same strides and alignment on every number of tensor ranks, on which the bits of matrix products may depend.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace braid::nn {

// The heads of rows [.. | .. | ..]: stretch i has `counts[i]` heads of `width` features for each of the groups.
struct HeadGroups {
  int64_t groups = 1, width = 1;
  std::vector<int64_t> counts;
};

// Returns the rows of each group, (b x groups) x t x f. The rows are contiguous, and those of a group begin at a
// multiple of 64 bytes.
at::Tensor group_heads(const at::Tensor& x_btf, const HeadGroups& heads);
// Returns the rows of all groups, b x t x f.
at::Tensor ungroup_heads(const at::Tensor& x_gtf, const HeadGroups& heads);

}  // namespace braid::nn
