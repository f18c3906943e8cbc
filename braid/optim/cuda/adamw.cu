// Grid-stride loop over packs of four elements, 16-byte loads and stores. Bound by memory: 28 bytes per float32
// element.
#include <cuda_runtime.h>

#include <algorithm>

#include "braid/optim/cuda/adamw_cuda.h"

namespace braid {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 132 * 16;  // fills the largest devices several times over; more only adds tails

template <class T>
struct alignas(16) Pack {
  T at[4];
};

template <class T>
__global__ void __launch_bounds__(kThreads) adamw_kernel(const AdamWRange<T> range) {
  const int64_t first_thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t num_threads = int64_t{gridDim.x} * kThreads;
  const int64_t num_packs = range.count / 4;
  auto* weights = reinterpret_cast<Pack<T>*>(range.weight);
  const auto* grads = reinterpret_cast<const Pack<T>*>(range.grad);
  auto* firsts = reinterpret_cast<Pack<T>*>(range.first);
  auto* seconds = reinterpret_cast<Pack<T>*>(range.second);
  for (int64_t i = first_thread; i < num_packs; i += num_threads) {
    Pack<T> weight = weights[i], first = firsts[i], second = seconds[i];
    const Pack<T> grad = grads[i];
#pragma unroll
    for (int j = 0; j < 4; ++j) adamw_update(weight.at[j], grad.at[j], first.at[j], second.at[j], range.factors);
    weights[i] = weight;
    firsts[i] = first;
    seconds[i] = second;
  }
  const int64_t rest = 4 * num_packs + first_thread;
  if (rest < range.count) {
    adamw_update(range.weight[rest], range.grad[rest], range.first[rest], range.second[rest], range.factors);
  }
}

template <class T>
const char* launch(const AdamWRange<T>& range, void* stream) {
  if (range.count == 0) return nullptr;
  const int64_t elements_per_block = int64_t{kThreads} * 4;
  const int64_t blocks = std::min((range.count + elements_per_block - 1) / elements_per_block, kMaxBlocks);
  adamw_kernel<T><<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(range);
  const cudaError_t refused = cudaGetLastError();
  return refused == cudaSuccess ? nullptr : cudaGetErrorString(refused);
}

}  // namespace

const char* adamw_cuda(const AdamWRange<float>& range, void* stream) { return launch(range, stream); }
const char* adamw_cuda(const AdamWRange<double>& range, void* stream) { return launch(range, stream); }

}  // namespace braid
