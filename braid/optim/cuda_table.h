// This component's functions in libbraid_cuda.so. Each puts kernels on `stream` (a cudaStream_t) and returns before
// they have run: null, or why CUDA refused. All memory is the device's.
#pragma once

#include <variant>

#include "braid/device/cuda_tables.h"
#include "braid/optim/element_update.h"
#include "braid/optim/grad_norm.h"

namespace braid::optim {

enum class RoundedTo { Nothing, Bfloat16, Float16 };

// Parameters that are updated at rates of their own.
inline constexpr int kMostGroups = 32;

template <class Factors>
struct FactorsOfGroups {
  Factors at[kMostGroups];
};

template <class Any>
struct OfGroups;
template <class... Factors>
struct OfGroups<std::variant<Factors...>> {
  using Any = std::variant<FactorsOfGroups<Factors>...>;
};

// An elementwise update of a stretch of the flat buffers, whose blocks of kFlatBlock elements have a group in common.
template <class T>
struct FlatUpdate {
  ElementRange<T> range;          // aligned to 16 bytes
  const uint8_t* group_of_block;  // of the stretch's blocks
  typename OfGroups<AnyFactors<T>>::Any factors;
  void* data;  // the weights rounded, aligned to 8 bytes; anything for RoundedTo::Nothing
  RoundedTo rounded;
};

struct OptimCudaTable {
  static constexpr const char* kRoom = "optim";
  device::CudaTable header;
  // The arithmetic is that of the CPU (element_update) up to fused multiply-adds: last bits differ.
  const char* (*update_f32)(const FlatUpdate<float>&, void* stream);
  const char* (*update_f64)(const FlatUpdate<double>&, void* stream);
  const char* (*squares_f32)(const FlatSquares<float>&, void* stream);
  const char* (*squares_f64)(const FlatSquares<double>&, void* stream);
};

}  // namespace braid::optim
