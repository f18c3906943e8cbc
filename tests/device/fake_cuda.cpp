// A libbraid_cuda.so without CUDA: what its tables say is set from outside, before the entry is called.
#include <cstring>
#include <string>

#include "braid/device/cuda_services.h"

namespace {

std::string device_problem;

braid::device::CudaServices services{{braid::device::kCudaTableVersion, sizeof(braid::device::CudaServices)},
                                     [] { return device_problem.c_str(); },
                                     [](int, braid::device::CudaDeviceFacts* out) {
                                       *out = {"Made of paper", 9, 0, 132, int64_t{80} << 30, 13000, 13000};
                                     },
                                     [](int) {},
                                     [](int device) { return reinterpret_cast<void*>(intptr_t{100} + device); },
                                     [](int, braid::device::CudaMemory* out) {
                                       *out = {7, 9};
                                     },
                                     [](int) {},
                                     []() -> void* { return nullptr; },
                                     [](void*, void*) {},
                                     [](void*) {},
                                     [](void*) {},
                                     [](void*) {},
                                     [](void*) {}};

}  // namespace

extern "C" {

const braid::device::CudaTable* braid_cuda_table(const char* room) {
  return std::strcmp(room, "device") == 0 ? &services.header : nullptr;
}
void set_fake_problem(const char* problem) { device_problem = problem; }
void set_fake_version(int64_t version) { services.header.version = version; }
}
