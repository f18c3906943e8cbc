// Between a global tensor and what ranks hold of it, piece by piece.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid {

inline at::Tensor box_of(at::Tensor tensor, const mesh::Index& begin, const mesh::Box& extent) {
  for (size_t d = 0; d < begin.size(); ++d) {
    tensor = tensor.narrow(static_cast<int64_t>(d), begin[d], extent.end[d] - extent.begin[d]);
  }
  return tensor;
}

// Returns a rank's shard of `global`; zeros in the padding.
inline at::Tensor place(const at::Tensor& global, const mesh::Placement& placement) {
  const at::Tensor local = at::zeros(placement.local_shape, global.options());
  for (const mesh::Piece& piece : placement.pieces) {
    box_of(local, piece.local_begin, piece.global).copy_(box_of(global, piece.global.begin, piece.global));
  }
  return local;
}

using Placed = std::pair<mesh::Placement, at::Tensor>;

// The global tensor that the ranks' local ones make up. Expects that ranks agree bit for bit on what they all hold,
// that nothing is missing and that padding is zero.
inline at::Tensor gather_placed(const std::vector<Placed>& ranks) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor global = at::full(ranks.front().first.global_shape, nan, ranks.front().second.options());
  for (const auto& [placement, local] : ranks) {
    const at::Tensor padding = local.clone();
    for (const mesh::Piece& piece : placement.pieces) {
      const at::Tensor from = box_of(local, piece.local_begin, piece.global);
      const at::Tensor to = box_of(global, piece.global.begin, piece.global);
      EXPECT_TRUE(to.isnan().all().item<bool>() || to.equal(from)) << "copies differ";
      to.copy_(from);
      box_of(padding, piece.local_begin, piece.global).zero_();
    }
    EXPECT_TRUE(padding.eq(0).all().item<bool>()) << "padding is not zero";
  }
  EXPECT_FALSE(global.isnan().any().item<bool>()) << "no rank holds some part";
  return global;
}

}  // namespace braid
