// AdamW on a range of device memory, as one kernel. Raw pointers in, nothing of LibTorch: the caller knows the stream.
// It does not look for a device, allocate or synchronise.
#pragma once

#include "braid/optim/adamw_update.h"

namespace braid {

// Enqueues the update of `range`, whose pointers are device memory aligned to 16 bytes, on `stream` (a cudaStream_t).
// The arithmetic is that of the CPU (adamw_update) up to fused multiply-adds: last bits differ.
// Returns nullptr, or what CUDA says when it refuses the launch.
[[nodiscard]] const char* adamw_cuda(const AdamWRange<float>& range, void* stream);
[[nodiscard]] const char* adamw_cuda(const AdamWRange<double>& range, void* stream);

}  // namespace braid
