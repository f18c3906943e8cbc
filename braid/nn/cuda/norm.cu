// The norm kernels, with one block of threads per row in forward and per part of the rows in backward. The two sums of
// backward are in shared memory if they fit.
#include "braid/device/cuda/launch.cuh"
#include "braid/nn/cuda/launchers.h"
#include "braid/nn/kernels/team_norm.h"

namespace braid::kernels::cuda {
namespace {

template <int N, class T>
__global__ void __launch_bounds__(device::kMostTeamThreads)
    forward_kernel(const NormForwardRows<T> call, int64_t rows) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) team_norm_forward<N>(call, row, device::BlockTeam());
}

enum class Work { Shared, Global };

template <int N, Work kWork, class T>
__global__ void __launch_bounds__(device::kMostTeamThreads)
    backward_kernel(const NormBackwardRows<T> call, const RowParts parts, MathOf<T>* all_sums) {
  extern __shared__ __align__(16) unsigned char memory[];
  MathOf<T>* sums = all_sums + blockIdx.x * 2 * call.width;
  MathOf<T>* work = kWork == Work::Shared ? reinterpret_cast<MathOf<T>*>(memory) : sums;
  team_norm_backward<N>(call, parts.part(blockIdx.x), device::BlockTeam(), work, sums);
}

template <int N, class T>
const char* launch_backward(const NormBackwardRows<T>& call, const PartSums<MathOf<T>>& sums, void* stream) {
  const device::LaunchShape shape{sums.shape.num, device::team_shape(1, call.width / N).threads};
  const int64_t bytes = 2 * call.width * static_cast<int64_t>(sizeof(MathOf<T>));
  const char* refused =
      bytes <= kMostSharedBytes
          ? device::launch(backward_kernel<N, Work::Shared, T>, shape, bytes, stream, call, sums.shape, sums.parts)
          : device::launch(backward_kernel<N, Work::Global, T>, shape, 0, stream, call, sums.shape, sums.parts);
  return refused ? refused : add_parts(sums, 2 * call.width, stream);
}

}  // namespace

template <class T>
const char* norm_forward(const NormForwardRows<T>& call, int64_t rows, void* stream) {
  if (fits_packs<T>(call.width, call.residual, call.branch, call.branch_bias, call.sum, call.weight, call.bias,
                    call.y)) {
    return device::launch(forward_kernel<kPack<T>, T>, device::team_shape(rows, call.width / kPack<T>), 0, stream, call,
                          rows);
  }
  return device::launch(forward_kernel<1, T>, device::team_shape(rows, call.width), 0, stream, call, rows);
}

template <class T>
const char* norm_backward(const NormBackwardRows<T>& call, const PartSums<MathOf<T>>& sums, void* stream) {
  if (fits_packs<T>(call.width, call.dsum, call.dy, call.x, call.weight, call.dx, sums.parts)) {
    return launch_backward<kPack<T>>(call, sums, stream);
  }
  return launch_backward<1>(call, sums, stream);
}

#define BRAID_INSTANTIATE(T)                                                    \
  template const char* norm_forward(const NormForwardRows<T>&, int64_t, void*); \
  template const char* norm_backward(const NormBackwardRows<T>&, const PartSums<MathOf<T>>&, void*);
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(c10::BFloat16)
BRAID_INSTANTIATE(c10::Half)
#undef BRAID_INSTANTIATE

}  // namespace braid::kernels::cuda
