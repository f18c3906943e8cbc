// The kernels of the loss and of scattered rows, with one block of threads per row.
#include "braid/device/cuda/launch.cuh"
#include "braid/nn/cuda/launchers.h"

namespace braid::kernels::cuda {
namespace {

template <int N, class T>
__global__ void __launch_bounds__(device::kMostTeamThreads) sums_kernel(const SoftmaxSumRows<T> call, int64_t rows) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) team_softmax_sums<N>(call, row, device::BlockTeam());
}
template <int N, class T>
__global__ void __launch_bounds__(device::kMostTeamThreads)
    gradient_kernel(const TeamSoftmaxGradient<T> call, int64_t rows) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) team_softmax_gradient<N>(call, row, device::BlockTeam());
}
template <int N, class T>
__global__ void __launch_bounds__(device::kMostTeamThreads) add_rows_kernel(const SortedRows<T> call) {
  for (int64_t k = blockIdx.x; k < call.count; k += gridDim.x) team_add_rows<N>(call, k, device::BlockTeam());
}

}  // namespace

template <class T>
const char* softmax_sums(const SoftmaxSumRows<T>& call, int64_t rows, void* stream) {
  const int64_t width = call.logits.width;
  if (fits_packs<T>(width, call.logits.x)) {
    return device::launch(sums_kernel<kPack<T>, T>, device::team_shape(rows, width / kPack<T>), 0, stream, call, rows);
  }
  return device::launch(sums_kernel<1, T>, device::team_shape(rows, width), 0, stream, call, rows);
}

template <class T>
const char* softmax_gradient(const TeamSoftmaxGradient<T>& call, int64_t rows, void* stream) {
  const int64_t width = call.logits.width;
  if (fits_packs<T>(width, call.logits.x)) {
    return device::launch(gradient_kernel<kPack<T>, T>, device::team_shape(rows, width / kPack<T>), 0, stream, call,
                          rows);
  }
  return device::launch(gradient_kernel<1, T>, device::team_shape(rows, width), 0, stream, call, rows);
}

template <class T>
const char* add_rows(const SortedRows<T>& call, void* stream) {
  if (fits_packs<T>(call.width, call.x, call.table)) {
    return device::launch(add_rows_kernel<kPack<T>, T>, device::team_shape(call.count, call.width / kPack<T>), 0,
                          stream, call);
  }
  return device::launch(add_rows_kernel<1, T>, device::team_shape(call.count, call.width), 0, stream, call);
}

#define BRAID_INSTANTIATE(T)                                                            \
  template const char* softmax_sums(const SoftmaxSumRows<T>&, int64_t, void*);          \
  template const char* softmax_gradient(const TeamSoftmaxGradient<T>&, int64_t, void*); \
  template const char* add_rows(const SortedRows<T>&, void*);
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(c10::BFloat16)
BRAID_INSTANTIATE(c10::Half)
#undef BRAID_INSTANTIATE

}  // namespace braid::kernels::cuda
