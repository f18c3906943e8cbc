// The weight-gradient product by cuBLAS. It uses LibTorch's handle, which is bound to the calling thread's stream and
// has a workspace.
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

#include "braid/nn/cuda/launchers.h"

namespace braid::kernels::cuda {

const char* product(const WeightProduct& product) {
  const GemmCall call = gemm_call(product);
  if (call.m == 0 || call.n == 0) return nullptr;
  const cudaDataType_t type = product.type == NarrowType::Bfloat16 ? CUDA_R_16BF : CUDA_R_16F;
  const float one = 1;
  const cublasStatus_t status =
      cublasGemmEx_64(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_T, call.m, call.n, call.k, &one,
                      call.a, type, call.lda, call.b, type, call.ldb, &product.beta, call.c, CUDA_R_32F, call.ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : cublasGetStatusString(status);
}

}  // namespace braid::kernels::cuda
