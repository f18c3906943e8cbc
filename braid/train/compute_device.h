// The device that ranks compute on, and its set-up for the process, for a rank's thread and for a microbatch. On the
// CPU these functions do nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "braid/device/cuda_services.h"
#include "braid/nn/block.h"
#include "braid/optim/optimizer.h"
#include "braid/param/memory_account.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the device of train.device: the CPU, or the first CUDA device.
at::Device compute_device(const RunSpec& spec);

// Opens the CUDA libraries. Called before any rank starts. Throws ConfigError if the machine lacks the device that
// train.device names.
void open_device(const RunSpec& spec);
// Gives the calling thread, which is a rank's, its own stream, and resets the device's peak of memory. Called before
// the rank makes tensors.
void enter_device(const RunSpec& spec);

// Resets the device's peak of memory, since its allocator also counts measurements made beside the run. Called on the
// rank's thread. REQUIRES: no rank is measuring on the device.
void forget_peak(const RunSpec& spec);

// Returns `microbatch` with the tensors that blocks read on `device`. Returns before the copies are complete. check()
// fails if a token or target is not in [0, vocab), since device kernels do not check that.
nn::Microbatch placed_on(at::Device device, nn::Microbatch microbatch, int64_t vocab);

using MemoryByCategory = std::array<int64_t, param::kNumMemoryCategories>;
// Returns the memory account of a device. Its allocator has no categories: the bytes of `kept` are allocated all the
// time, and all other bytes count as activations.
param::MemoryUse device_memory_use(const device::CudaMemory& memory, const MemoryByCategory& kept);

// Returns the memory account of a rank. On the CPU it is the allocator's.
param::MemoryUse memory_held(int rank, const param::ParamStore& store, optim::Optimizer& optimizer);

}  // namespace braid::train
