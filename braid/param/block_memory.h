// Tensors whose memory begins at a block of a disk, so that the disk reads into it and writes from it directly.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::param {

// Returns a 1-D tensor on the CPU, uninitialised, whose memory begins at a multiple of disk::kBlockBytes, again after
// each restore_memory() (releasable.h). It is counted as other allocations of the thread are.
at::Tensor empty_on_blocks(int64_t length, at::ScalarType type);

// Returns the bytes that are counted for such a tensor when it has memory.
int64_t bytes_on_blocks(const at::Tensor& flat);

// Returns the memory of a 1-D tensor, for a transfer.
std::span<std::byte> bytes_of(const at::Tensor& flat);

}  // namespace braid::param
