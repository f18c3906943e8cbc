// The table of nn's functions in libbraid_cuda.so. Each function enqueues kernels on `stream` (a cudaStream_t) and
// returns before they have run. It returns null, or CUDA's error text if the launch failed. All memory is device
// memory.
#pragma once

#include "braid/device/cuda_tables.h"
#include "braid/nn/kernels/gemm_call.h"
#include "braid/nn/kernels/row_parts.h"
#include "braid/nn/kernels/team_activation.h"
#include "braid/nn/kernels/team_loss.h"

namespace braid::kernels {

// The sums over rows that a kernel computes for each column j: to[j] = keep * to[j] + sum. Parts of the rows are summed
// first, then the parts are added in order. `parts` has room for shape.num times the sums.
template <class M>
struct PartSums {
  RowParts shape;
  M* parts;
  M* to;
  M keep;  // 0 or 1
};

template <class T>
struct CudaRowTable {
  using M = MathOf<T>;
  const char* (*norm_forward)(const NormForwardRows<T>&, int64_t rows, void* stream);
  const char* (*norm_backward)(const NormBackwardRows<T>&, const PartSums<M>&, void* stream);  // 2 width sums
  const char* (*gelu_forward)(const GeluForwardRows<T>&, int64_t rows, void* stream);
  const char* (*gelu_backward)(const GeluBackwardRows<T>&, const PartSums<M>&, void* stream);
  const char* (*swiglu_forward)(const GateForwardRows<T>&, int64_t rows, void* stream);
  const char* (*swiglu_backward)(const GateBackwardRows<T>&, int64_t rows, void* stream);
  const char* (*rotary)(const RotaryRows<T>&, int64_t rows, void* stream);
  const char* (*row_sum)(const RowMatrix<T>&, const PartSums<M>&, void* stream);
  const char* (*softmax_sums)(const SoftmaxSumRows<T>&, int64_t rows, void* stream);
  const char* (*softmax_gradient)(const TeamSoftmaxGradient<T>&, int64_t rows, void* stream);
  const char* (*add_rows)(const SortedRows<T>&, void* stream);
};

struct NnCudaTable {
  static constexpr const char* kRoom = "nn";
  device::CudaTable header;
  CudaRowTable<float> f32;
  CudaRowTable<double> f64;
  CudaRowTable<c10::BFloat16> bf16;
  CudaRowTable<c10::Half> f16;
  const char* (*keep_mask)(const KeepMask&, void* stream);
  // Enqueues on the calling thread's stream, with LibTorch's cuBLAS handle.
  const char* (*product)(const WeightProduct&);
};

template <class T>
const CudaRowTable<T>& rows_of(const NnCudaTable& table) {
  if constexpr (std::is_same_v<T, float>) return table.f32;
  if constexpr (std::is_same_v<T, double>) return table.f64;
  if constexpr (std::is_same_v<T, c10::BFloat16>) return table.bf16;
  if constexpr (std::is_same_v<T, c10::Half>) return table.f16;
}

}  // namespace braid::kernels
