// The one entry of libbraid_cuda.so. It knows rooms by name only.
#include <cstring>

#include "braid/device/cuda_tables.h"

namespace braid {

const CudaTable* device_cuda_table();
const CudaTable* optim_cuda_table();
const CudaTable* nn_cuda_table();

}  // namespace braid

extern "C" __attribute__((visibility("default"))) const braid::CudaTable* braid_cuda_table(const char* room) {
  if (std::strcmp(room, "device") == 0) return braid::device_cuda_table();
  if (std::strcmp(room, "optim") == 0) return braid::optim_cuda_table();
  if (std::strcmp(room, "nn") == 0) return braid::nn_cuda_table();
  return nullptr;
}
