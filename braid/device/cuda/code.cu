// Checks that this library's code runs on the device, with a kernel that does nothing.
#include <cuda_runtime.h>

namespace braid::device {

namespace {

__global__ void nothing_kernel() {}

}  // namespace

// Returns the error text; empty if the code runs.
const char* code_problem() {
  cudaFuncAttributes attributes{};
  const cudaError_t failed = cudaFuncGetAttributes(&attributes, nothing_kernel);
  if (failed == cudaSuccess) return "";
  (void)cudaGetLastError();
  return cudaGetErrorString(failed);
}

}  // namespace braid::device
