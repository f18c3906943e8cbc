// The table of optim's functions in libbraid_cuda.so. Each function enqueues kernels on `stream` (a cudaStream_t) and
// returns before they have run. It returns null, or CUDA's error text if the launch failed. All memory is device
// memory.
#pragma once

#include <variant>

#include "braid/device/cuda_tables.h"
#include "braid/optim/element_update.h"
#include "braid/optim/flat_squares.h"

namespace braid::optim {

enum class RoundedTo { Nothing, Bfloat16, Float16 };

// The most parameter groups with different rates.
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

// An elementwise update of a stretch of the flat buffers. All elements of a block of kFlatBlock elements are in one
// group.
template <class T>
struct FlatUpdate {
  ElementRange<T> range;          // aligned to 16 bytes
  const uint8_t* group_of_block;  // group index of each of the stretch's blocks
  typename OfGroups<AnyFactors<T>>::Any factors;
  void* data;  // the rounded weights, aligned to 8 bytes; unused for RoundedTo::Nothing
  RoundedTo rounded;
};

struct OptimCudaTable {
  static constexpr const char* kRoom = "optim";
  device::CudaTable header;
  // The arithmetic is that of the CPU (element_update), except for fused multiply-adds: the last bits differ.
  const char* (*update_f32)(const FlatUpdate<float>&, void* stream);
  const char* (*update_f64)(const FlatUpdate<double>&, void* stream);
  const char* (*squares_f32)(const FlatSquares<float>&, void* stream);
  const char* (*squares_f64)(const FlatSquares<double>&, void* stream);
};

}  // namespace braid::optim
