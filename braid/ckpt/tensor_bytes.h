// at::Tensors as the file formats see them: an element type, and bytes. Copies nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "braid/ckpt/safetensors.h"
#include "braid/mesh/placement.h"

namespace braid::ckpt {

// Returns true if checkpoints can store tensors of this type.
bool is_stored(at::ScalarType type);
// check() fails for types that checkpoints cannot store.
ElementType element_type(at::ScalarType type);
// check() fails for types of the format that checkpoints do not use.
at::ScalarType scalar_type(ElementType type);

// Returns the memory of a contiguous tensor on the host.
std::span<std::byte> bytes_of(const at::Tensor& tensor);

// Returns the view of `local` in which `piece` lies; for a tensor without dims, all of it.
at::Tensor part_of(const at::Tensor& local, const mesh::Piece& piece);

}  // namespace braid::ckpt
