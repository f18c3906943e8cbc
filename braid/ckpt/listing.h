// The tensors of one rank as text for other ranks: names, types, shapes, and the boxes that the rank holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/safetensors.h"

namespace braid::ckpt {

struct ListedTensor {
  TensorInfo info;               // of the whole tensor
  std::vector<mesh::Box> boxes;  // empty ones left out
  bool operator==(const ListedTensor&) const = default;
};

// In the order of `tensors`. check() fails for one that is not contiguous or not of its placement's local shape.
std::vector<ListedTensor> listed(const std::vector<PlacedTensor>& tensors);

std::string packed(const std::vector<ListedTensor>& listing);
// check() fails for what packed() did not make.
std::vector<ListedTensor> unpacked_listing(std::string_view text);

}  // namespace braid::ckpt
