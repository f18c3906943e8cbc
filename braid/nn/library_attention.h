// LibTorch's attention, for every type.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "braid/model/graph.h"

namespace braid::nn {

// The options of LibTorch's attention. Without a scale, it is 1 / sqrt(features).
struct LibraryOptions {
  model::Sees sees = model::Sees::Earlier;
  std::optional<at::Tensor> mask_ts = {};  // instead of `sees`
  std::optional<double> scale = {};
};

// Returns the heads' outputs. In q, k and v, b x heads x tokens x features, several query heads may share a head of
// keys and values. Types that the CPU does not multiply are computed in float32 and rounded once.
at::Tensor library_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const LibraryOptions& options);

}  // namespace braid::nn
