// The activation kernels, with one thread per pack of elements, or per column of packs if columns are summed.
#include "braid/device/cuda/launch.cuh"
#include "braid/nn/cuda/launchers.h"

namespace braid::kernels::cuda {
namespace {

template <int N, class T>
__global__ void gelu_forward_kernel(const GeluForwardRows<T> call, int64_t packs) {
  for (int64_t i = device::first_item(); i < packs; i += device::item_stride()) pack_gelu_forward<N>(call, i);
}
template <int N, class T>
__global__ void swiglu_forward_kernel(const GateForwardRows<T> call, int64_t packs) {
  for (int64_t i = device::first_item(); i < packs; i += device::item_stride()) pack_swiglu_forward<N>(call, i);
}
template <int N, class T>
__global__ void swiglu_backward_kernel(const GateBackwardRows<T> call, int64_t packs) {
  for (int64_t i = device::first_item(); i < packs; i += device::item_stride()) pack_swiglu_backward<N>(call, i);
}
template <int N, class T>
__global__ void rotary_kernel(const RotaryRows<T> call, int64_t packs) {
  for (int64_t i = device::first_item(); i < packs; i += device::item_stride()) pack_rotary<N>(call, i);
}
__global__ void keep_mask_kernel(const KeepMask call) {
  for (int64_t i = device::first_item(); i < call.draws(); i += device::item_stride()) draw_keep_mask(call, i);
}

template <int N, class T>
__global__ void gelu_backward_kernel(const GeluBackwardRows<T> call, const RowParts parts, MathOf<T>* sums) {
  const int64_t j = device::first_item() * N;
  if (j < call.width) column_gelu_backward<N>(call, j, parts.part(blockIdx.y), sums + blockIdx.y * call.width);
}
template <int N, class T>
__global__ void row_sum_kernel(const RowMatrix<T> call, const RowParts parts, MathOf<T>* sums) {
  const int64_t j = device::first_item() * N;
  if (j < call.width) column_sum<N>(call, j, parts.part(blockIdx.y), sums + blockIdx.y * call.width);
}
template <class M>
__global__ void parts_kernel(const SumParts<M> call, int64_t width, M keep) {
  const int64_t j = device::first_item();
  if (j < width) column_of_parts(call, j, keep);
}

}  // namespace

template <class M>
const char* add_parts(const PartSums<M>& sums, int64_t width, void* stream) {
  const SumParts<M> call{sums.parts, sums.shape.num, width, sums.to};
  return device::launch(parts_kernel<M>, column_shape(width, 1), 0, stream, call, width, sums.keep);
}
template const char* add_parts(const PartSums<float>&, int64_t, void*);
template const char* add_parts(const PartSums<double>&, int64_t, void*);

template <class T>
const char* gelu_forward(const GeluForwardRows<T>& call, int64_t rows, void* stream) {
  const int64_t elements = rows * call.width;
  if (fits_packs<T>(call.width, call.h, call.bias, call.y)) {
    const int64_t packs = elements / kPack<T>;
    return device::launch(gelu_forward_kernel<kPack<T>, T>, device::flat_shape(packs), 0, stream, call, packs);
  }
  return device::launch(gelu_forward_kernel<1, T>, device::flat_shape(elements), 0, stream, call, elements);
}

template <class T>
const char* gelu_backward(const GeluBackwardRows<T>& call, const PartSums<MathOf<T>>& sums, void* stream) {
  const bool packs = fits_packs<T>(call.width, call.dy, call.h, call.bias, call.dh, sums.parts);
  const device::LaunchShape shape = column_shape(packs ? call.width / kPack<T> : call.width, sums.shape.num);
  const char* refused =
      packs ? device::launch(gelu_backward_kernel<kPack<T>, T>, shape, 0, stream, call, sums.shape, sums.parts)
            : device::launch(gelu_backward_kernel<1, T>, shape, 0, stream, call, sums.shape, sums.parts);
  return refused ? refused : add_parts(sums, call.width, stream);
}

template <class T>
const char* row_sum(const RowMatrix<T>& call, const PartSums<MathOf<T>>& sums, void* stream) {
  const bool packs = fits_packs<T>(call.width, call.x, sums.parts);
  const device::LaunchShape shape = column_shape(packs ? call.width / kPack<T> : call.width, sums.shape.num);
  const char* refused =
      packs ? device::launch(row_sum_kernel<kPack<T>, T>, shape, 0, stream, call, sums.shape, sums.parts)
            : device::launch(row_sum_kernel<1, T>, shape, 0, stream, call, sums.shape, sums.parts);
  return refused ? refused : add_parts(sums, call.width, stream);
}

template <class T>
const char* swiglu_forward(const GateForwardRows<T>& call, int64_t rows, void* stream) {
  const int64_t elements = rows * call.width;
  if (fits_packs<T>(call.width, call.gate_up, call.y)) {
    const int64_t packs = elements / kPack<T>;
    return device::launch(swiglu_forward_kernel<kPack<T>, T>, device::flat_shape(packs), 0, stream, call, packs);
  }
  return device::launch(swiglu_forward_kernel<1, T>, device::flat_shape(elements), 0, stream, call, elements);
}

template <class T>
const char* swiglu_backward(const GateBackwardRows<T>& call, int64_t rows, void* stream) {
  const int64_t elements = rows * call.width;
  if (fits_packs<T>(call.width, call.dy, call.gate_up, call.dgate_up)) {
    const int64_t packs = elements / kPack<T>;
    return device::launch(swiglu_backward_kernel<kPack<T>, T>, device::flat_shape(packs), 0, stream, call, packs);
  }
  return device::launch(swiglu_backward_kernel<1, T>, device::flat_shape(elements), 0, stream, call, elements);
}

template <class T>
const char* rotary(const RotaryRows<T>& call, int64_t rows, void* stream) {
  const int64_t elements = rows * call.heads * call.half;
  if (call.stride % kPack<T> == 0 && fits_packs<T>(call.half, call.x, call.cos, call.sin)) {
    const int64_t packs = elements / kPack<T>;
    return device::launch(rotary_kernel<kPack<T>, T>, device::flat_shape(packs), 0, stream, call, packs);
  }
  return device::launch(rotary_kernel<1, T>, device::flat_shape(elements), 0, stream, call, elements);
}

const char* keep_mask(const KeepMask& call, void* stream) {
  return device::launch(keep_mask_kernel, device::flat_shape(call.draws()), 0, stream, call);
}

#define BRAID_INSTANTIATE(T)                                                                         \
  template const char* gelu_forward(const GeluForwardRows<T>&, int64_t, void*);                      \
  template const char* gelu_backward(const GeluBackwardRows<T>&, const PartSums<MathOf<T>>&, void*); \
  template const char* row_sum(const RowMatrix<T>&, const PartSums<MathOf<T>>&, void*);              \
  template const char* swiglu_forward(const GateForwardRows<T>&, int64_t, void*);                    \
  template const char* swiglu_backward(const GateBackwardRows<T>&, int64_t, void*);                  \
  template const char* rotary(const RotaryRows<T>&, int64_t, void*);
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(c10::BFloat16)
BRAID_INSTANTIATE(c10::Half)
#undef BRAID_INSTANTIATE

}  // namespace braid::kernels::cuda
