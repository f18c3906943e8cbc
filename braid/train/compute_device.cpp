// The CPU needs no set-up. CUDA is loaded on demand.
#include "braid/train/compute_device.h"

#include <ATen/Context.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/device/cuda_tables.h"

namespace braid::train {
namespace {

// Copies through pinned memory, which LibTorch keeps until the copy is done. A copy from other memory would wait for
// the device.
at::Tensor sent(const at::Tensor& x, at::Device device) {
  return x.pin_memory().to(device, x.scalar_type(), /*non_blocking=*/true);
}

// `least`: 0, or nn::kNoTarget where targets may be missing.
void check_entries(const at::Tensor& tokens, int64_t vocab, int64_t least) {
  if (!tokens.defined() || tokens.numel() == 0) return;
  check(tokens.min().item<int64_t>() >= least && tokens.max().item<int64_t>() < vocab,
        "tokens and targets are entries of the vocabulary");
}

}  // namespace

at::Device compute_device(const RunSpec& spec) {
  return spec.train.device == DeviceKind::Cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

void open_device(const RunSpec& spec) {
  if (spec.train.device == DeviceKind::Cuda) device::load_cuda(device::cuda_places());
}

void enter_device(const RunSpec& spec) {
  const at::Device device = compute_device(spec);
  if (device.is_cpu()) return;
  at::globalContext().lazyInitDevice(device.type());  // before this, the allocator has no statistics
  const auto& services = *device::cuda_table<device::CudaServices>();
  services.take_stream(device.index());
  services.reset_peak(device.index());
}

void forget_peak(const RunSpec& spec) {
  const at::Device device = compute_device(spec);
  if (!device.is_cpu()) device::cuda_table<device::CudaServices>()->reset_peak(device.index());
}

nn::Microbatch placed_on(at::Device device, nn::Microbatch microbatch, int64_t vocab) {
  if (device.is_cpu()) return microbatch;
  for (at::Tensor* tokens : {&microbatch.tokens_bt, &microbatch.targets_bt}) {
    check_entries(*tokens, vocab, microbatch.rows_bj.defined() ? nn::kNoTarget : 0);
    if (tokens->defined()) *tokens = sent(*tokens, device);
  }
  if (microbatch.rows_bj.defined()) microbatch.rows_bj = sent(microbatch.rows_bj, device);
  const auto key = static_cast<int64_t>(microbatch.dropout_key);
  microbatch.dropout_key_1 = at::full({1}, key, at::TensorOptions(at::kLong).device(device));
  return microbatch;
}

param::MemoryUse device_memory_use(const device::CudaMemory& memory, const MemoryByCategory& kept) {
  param::MemoryUse use;
  use.bytes = use.peak_bytes = kept;
  int64_t all_kept = 0;
  for (const int64_t bytes : kept) all_kept += bytes;
  const auto activations = static_cast<size_t>(param::MemoryCategory::Activations);
  use.bytes[activations] += std::max<int64_t>(0, memory.bytes - all_kept);
  use.peak_bytes[activations] += std::max<int64_t>(0, memory.peak_bytes - all_kept);
  use.peak_total_bytes = memory.peak_bytes;
  return use;
}

param::MemoryUse memory_held(int rank, const param::ParamStore& store, optim::Optimizer& optimizer) {
  if (store.flat_data().is_cpu()) return param::memory_use(rank);
  const auto bytes = [](const at::Tensor& x) { return static_cast<int64_t>(x.nbytes()); };
  MemoryByCategory kept{};
  kept[static_cast<size_t>(param::MemoryCategory::Parameters)] =
      bytes(store.flat_data()) + bytes(store.frozen_data().flat());
  kept[static_cast<size_t>(param::MemoryCategory::Gradients)] = bytes(store.flat_grads());
  auto& of_optimizer = kept[static_cast<size_t>(param::MemoryCategory::Optimizer)];
  for (const optim::OptimizerState& state : optimizer.states()) of_optimizer += bytes(state.flat);
  if (!store.flat_master().is_same(store.flat_data())) of_optimizer += bytes(store.flat_master());
  device::CudaMemory on_device;
  device::cuda_table<device::CudaServices>()->memory(store.flat_data().get_device(), &on_device);
  return device_memory_use(on_device, kept);
}

}  // namespace braid::train
