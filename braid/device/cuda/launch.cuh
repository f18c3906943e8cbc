// A block of a device as a team, and launching.
#pragma once

#include <cuda_runtime.h>

#include "braid/device/launch_shape.h"

namespace braid::device {

// The threads of this block. Every thread of the block calls sum() and max().
class BlockTeam {
 public:
  __device__ int64_t rank() const { return threadIdx.x; }
  __device__ int64_t size() const { return blockDim.x; }

  template <int K, class M>
  __device__ void sum(M (&values)[K]) const {
    reduce(values, [](M a, M b) { return a + b; });
  }
  template <class M>
  __device__ M max(M value) const {
    M values[1] = {value};
    reduce(values, [](M a, M b) { return a > b ? a : b; });
    return values[0];
  }

 private:
  // Within warps by exchange, then every thread goes over the warps in the same order.
  template <int K, class M, class Combine>
  __device__ static void reduce(M (&values)[K], const Combine& combine) {
    __shared__ M of_warps[kMostTeamThreads / kWarp][K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        values[k] = combine(values[k], __shfl_xor_sync(0xffffffffu, values[k], distance));
      }
    }
    const int num_warps = static_cast<int>(blockDim.x) / kWarp;
    if (num_warps == 1) return;
    if (threadIdx.x % kWarp == 0) {
      for (int k = 0; k < K; ++k) of_warps[threadIdx.x / kWarp][k] = values[k];
    }
    __syncthreads();
    for (int k = 0; k < K; ++k) {
      values[k] = of_warps[0][k];
      for (int warp = 1; warp < num_warps; ++warp) values[k] = combine(values[k], of_warps[warp][k]);
    }
    __syncthreads();  // before the next use of of_warps
  }
};

// Blocks loop over what there is beyond their number.
__device__ inline int64_t first_item() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t item_stride() { return int64_t{gridDim.x} * blockDim.x; }

inline const char* refusal() {
  const cudaError_t refused = cudaGetLastError();
  return refused == cudaSuccess ? nullptr : cudaGetErrorString(refused);
}

template <class... Parameters, class... Arguments>
const char* launch(void (*kernel)(Parameters...), const LaunchShape& shape, int64_t shared_bytes, void* stream,
                   const Arguments&... arguments) {
  if (shape.blocks == 0) return nullptr;
  constexpr int64_t kUnasked = 48 << 10;  // bytes of shared memory that every kernel may have
  if (shared_bytes > kUnasked) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  }
  const dim3 grid(static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.parts));
  kernel<<<grid, static_cast<unsigned>(shape.threads), static_cast<size_t>(shared_bytes),
           static_cast<cudaStream_t>(stream)>>>(arguments...);
  return refusal();
}

}  // namespace braid::device
