// This room's functions in libbraid_cuda.so. Each puts kernels on `stream` (a cudaStream_t) and returns before they
// have run: null, or why CUDA refused. All memory is the device's. It knows no tensor.
#pragma once

#include "braid/device/cuda_tables.h"
#include "braid/optim/adamw_update.h"
#include "braid/optim/block_squares.h"

namespace braid {

enum class RoundedTo { Nothing, Bfloat16, Float16 };

// AdamW over a whole flat buffer, whose blocks of kFlatBlock elements have their decay in common.
template <class T>
struct FlatAdamW {
  AdamWRange<T> range;    // aligned to 16 bytes; factors.keep is of the blocks that decay, the others keep 1
  const uint8_t* decays;  // per block: 1 when it decays
  void* data;             // the weights rounded, aligned to 8 bytes; null for RoundedTo::Nothing
  RoundedTo rounded;
};

struct OptimCudaTable {
  static constexpr const char* kRoom = "optim";
  CudaTable header;
  // The arithmetic is that of the CPU (adamw_update) up to fused multiply-adds: last bits differ.
  const char* (*adamw_f32)(const FlatAdamW<float>&, void* stream);
  const char* (*adamw_f64)(const FlatAdamW<double>&, void* stream);
  const char* (*squares_f32)(const FlatSquares<float>&, void* stream);
  const char* (*squares_f64)(const FlatSquares<double>&, void* stream);
};

}  // namespace braid
