// The only exported function of libbraid_cuda.so. It returns the table of a component by name.
#include <cstring>

#include "braid/device/cuda_tables.h"

namespace braid {

namespace device {
const CudaTable* device_cuda_table();
}  // namespace device
namespace optim {
const device::CudaTable* optim_cuda_table();
}  // namespace optim
namespace kernels {
const device::CudaTable* nn_cuda_table();
}  // namespace kernels

}  // namespace braid

extern "C" __attribute__((visibility("default"))) const braid::device::CudaTable* braid_cuda_table(
    const char* component) {
  if (std::strcmp(component, "device") == 0) return braid::device::device_cuda_table();
  if (std::strcmp(component, "optim") == 0) return braid::optim::optim_cuda_table();
  if (std::strcmp(component, "nn") == 0) return braid::kernels::nn_cuda_table();
  return nullptr;
}
