// The device that ranks compute on, and the set-up that it needs of the process, of a rank's thread and of a
// microbatch. On the CPU all of it does nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "braid/device/cuda_services.h"
#include "braid/nn/block.h"
#include "braid/param/memory_account.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the device of train.device: the CPU, or the first CUDA device.
at::Device compute_device(const RunSpec& spec);

// Before any rank starts: opens the CUDA libraries. Throws ConfigError when the machine has not what train.device asks.
void open_device(const RunSpec& spec);
// On the rank's thread, before it makes tensors: a stream of its own; peaks of memory begin here.
void enter_device(const RunSpec& spec);

// On the rank's thread: peaks of a device's memory begin anew here, since its allocator also counts what was measured
// beside the run. No rank of the device measures any more.
void forget_peak(const RunSpec& spec);

// The microbatch with what blocks read on `device`. Returns before the copies are over. check() fails when a token or
// target is not below `vocab`: on a device nobody looks.
nn::Microbatch placed_on(at::Device device, nn::Microbatch microbatch, int64_t vocab);

using MemoryByCategory = std::array<int64_t, param::kNumMemoryCategories>;
// Returns the memory account of a device, whose allocator has no categories: `kept` is there all the time, all other
// bytes are activations.
param::MemoryUse device_memory_use(const device::CudaMemory& memory, const MemoryByCategory& kept);

}  // namespace braid::train
