// The one entry of libbraid_cuda.so. It knows components by name only.
#include <cstring>

#include "braid/device/cuda_tables.h"

namespace braid::device {

const CudaTable* device_cuda_table();
const CudaTable* optim_cuda_table();
const CudaTable* nn_cuda_table();

}  // namespace braid::device

extern "C" __attribute__((visibility("default"))) const braid::device::CudaTable* braid_cuda_table(
    const char* component) {
  if (std::strcmp(component, "device") == 0) return braid::device::device_cuda_table();
  if (std::strcmp(component, "optim") == 0) return braid::device::optim_cuda_table();
  if (std::strcmp(component, "nn") == 0) return braid::device::nn_cuda_table();
  return nullptr;
}
