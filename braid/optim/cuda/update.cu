// The update and the sums of squares on a device. A thread updates four elements, with 16-byte loads and stores. The
// update is bound by memory: AdamW moves 28 bytes per float32 element, 30 with 16-bit data.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "braid/device/cuda/launch.cuh"
#include "braid/optim/cuda_table.h"

namespace braid::optim {

const device::CudaTable* optim_cuda_table();

namespace {

template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T at[4];
};

template <class To, class T>
__device__ void write_rounded(void* data, int64_t i, const Four<T>& weight) {
  Four<To> rounded;
#pragma unroll
  for (int j = 0; j < 4; ++j) rounded.at[j] = static_cast<To>(weight.at[j]);
  static_cast<Four<To>*>(data)[i] = rounded;
}

// A kernel's arguments, made from a FlatUpdate.
template <class Factors>
struct UpdateOf {
  ElementRange<typename Factors::Number> range;
  const uint8_t* group_of_block;
  void* data;
  FactorsOfGroups<Factors> factors;
};

template <RoundedTo kRounded, class Factors>
__global__ void __launch_bounds__(device::kFlatThreads) update_kernel(const __grid_constant__ UpdateOf<Factors> call) {
  using T = typename Factors::Number;
  auto* weights = reinterpret_cast<Four<T>*>(call.range.weight);
  const auto* grads = reinterpret_cast<const Four<T>*>(call.range.grad);
  [[maybe_unused]] auto* firsts = reinterpret_cast<Four<T>*>(call.range.first);
  [[maybe_unused]] auto* seconds = reinterpret_cast<Four<T>*>(call.range.second);
  for (int64_t i = device::first_item(); 4 * i < call.range.count; i += device::item_stride()) {
    const Factors factors = call.factors.at[call.group_of_block[4 * i / kFlatBlock]];
    Four<T> weight = weights[i];
    const Four<T> grad = grads[i];
    [[maybe_unused]] Four<T> first, second;
    if constexpr (Factors::kStates > 0) first = firsts[i];
    if constexpr (Factors::kStates > 1) second = seconds[i];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (Factors::kStates == 0) element_update(weight.at[j], grad.at[j], factors);
      if constexpr (Factors::kStates == 1) element_update(weight.at[j], grad.at[j], first.at[j], factors);
      if constexpr (Factors::kStates == 2) element_update(weight.at[j], grad.at[j], first.at[j], second.at[j], factors);
    }
    weights[i] = weight;
    if constexpr (Factors::kStates > 0) firsts[i] = first;
    if constexpr (Factors::kStates > 1) seconds[i] = second;
    if constexpr (kRounded == RoundedTo::Bfloat16) write_rounded<c10::BFloat16>(call.data, i, weight);
    if constexpr (kRounded == RoundedTo::Float16) write_rounded<c10::Half>(call.data, i, weight);
  }
}

template <RoundedTo kRounded, class T>
const char* launch_update(const FlatUpdate<T>& call, void* stream) {
  return std::visit(
      [&]<class Factors>(const FactorsOfGroups<Factors>& factors) {
        const UpdateOf<Factors> of_call{call.range, call.group_of_block, call.data, factors};
        return device::launch(update_kernel<kRounded, Factors>, device::flat_shape((call.range.count + 3) / 4), 0,
                              stream, of_call);
      },
      call.factors);
}

const char* update_f32(const FlatUpdate<float>& call, void* stream) {
  switch (call.rounded) {
    case RoundedTo::Bfloat16:
      return launch_update<RoundedTo::Bfloat16>(call, stream);
    case RoundedTo::Float16:
      return launch_update<RoundedTo::Float16>(call, stream);
    default:
      return launch_update<RoundedTo::Nothing>(call, stream);
  }
}
const char* update_f64(const FlatUpdate<double>& call, void* stream) {
  return launch_update<RoundedTo::Nothing>(call, stream);
}

template <class T>
__global__ void __launch_bounds__(device::kMostTeamThreads) blocks_kernel(const FlatSquares<T> call) {
  for (int64_t b = blockIdx.x; b < call.num_blocks; b += gridDim.x) team_square_block(call, b, device::BlockTeam());
}
template <class T>
__global__ void __launch_bounds__(device::kMostTeamThreads) slices_kernel(const FlatSquares<T> call) {
  for (int64_t s = blockIdx.x; s < call.num_slices; s += gridDim.x) team_sum_slice(call, s, device::BlockTeam());
}

template <class T>
const char* squares(const FlatSquares<T>& call, void* stream) {
  const char* refused = device::launch(blocks_kernel<T>, device::team_shape(call.num_blocks, 256), 0, stream, call);
  return refused ? refused
                 : device::launch(slices_kernel<T>, device::team_shape(call.num_slices, 512), 0, stream, call);
}

const OptimCudaTable kTable{
    {device::kCudaTableVersion, sizeof(OptimCudaTable)}, update_f32, update_f64, squares<float>, squares<double>};

}  // namespace

const device::CudaTable* optim_cuda_table() { return &kTable.header; }

}  // namespace braid::optim
