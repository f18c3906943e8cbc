// The table of this component's CUDA functions.
#include "braid/nn/cuda/launchers.h"

namespace braid::kernels {

const device::CudaTable* nn_cuda_table();

namespace {

template <class T>
constexpr CudaRowTable<T> kRows{cuda::norm_forward<T>,     cuda::norm_backward<T>,  cuda::gelu_forward<T>,
                                cuda::gelu_backward<T>,    cuda::swiglu_forward<T>, cuda::swiglu_backward<T>,
                                cuda::rotary<T>,           cuda::row_sum<T>,        cuda::softmax_sums<T>,
                                cuda::softmax_gradient<T>, cuda::add_rows<T>};

const NnCudaTable kTable{{device::kCudaTableVersion, sizeof(NnCudaTable)},
                         kRows<float>,
                         kRows<double>,
                         kRows<c10::BFloat16>,
                         kRows<c10::Half>,
                         cuda::keep_mask,
                         cuda::product};

}  // namespace

const device::CudaTable* nn_cuda_table() { return &kTable.header; }

}  // namespace braid::kernels
