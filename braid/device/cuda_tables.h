// The tables of functions in libbraid_cuda.so, one for each component that computes on a device. The program links
// neither it nor libtorch_cuda.so, which a machine without CUDA libraries cannot load: load_cuda() opens both.
//
//   braid ----------------- libtorch_cpu.so         always
//     | load_cuda()
//     +-- opens ----------- libtorch_cuda.so        beside libtorch_cpu.so; brings cuBLAS, cuDNN, NCCL
//     +-- opens ----------- libbraid_cuda.so        beside the program, or in ../lib/braid; its one entry,
//     braid_cuda_table(component)
#pragma once

#include <cstdint>
#include <string>

namespace braid::device {

// Shared libraries opened while the program runs.

// Shared: libraries opened later find this one's symbols.
enum class Symbols { Private, Shared };

// Never closed: a library that has started threads or a device cannot be unloaded safely.
class LoadedLibrary {
 public:
  LoadedLibrary() = default;
  // Every symbol is bound at once, so that what is missing is missing now. Not opened when it fails: see problem().
  LoadedLibrary(const std::string& path, Symbols symbols);

  // Why it could not be opened, in the loader's words; empty when it is open.
  const std::string& problem() const { return problem_; }
  // Null when there is none of that name.
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string problem_;
};

// The folder of a library that this process has loaded, by its file name ("libtorch_cpu.so"); empty when it has not.
std::string folder_of_loaded(const std::string& file_name);
// The folder of the running program.
std::string folder_of_program();

// A table begins with this; function pointers alone follow, and none is null.
struct CudaTable {
  int64_t version;
  int64_t bytes;  // of the whole table
};

// Changes whenever a table does, or anything that is handed through one.
inline constexpr int64_t kCudaTableVersion = 3;

// extern "C" braid_cuda_table: the table of `component`, null when there is none of that name.
using CudaTableEntry = const CudaTable* (*)(const char* component);
inline constexpr const char* kCudaTableEntryName = "braid_cuda_table";

// Validates a table of `bytes` bytes that came from a library. Returns the fault; empty if there is none.
std::string table_problem(const CudaTable* table, int64_t bytes);

struct CudaPlaces {
  std::string torch_library;  // libtorch_cuda.so
  std::string braid_library;  // libbraid_cuda.so
};
// Beside the libtorch_cpu.so and the program that run.
CudaPlaces cuda_places();

// Opens both libraries and asks for a device, once per process; later calls do nothing. To be called before anything
// asks LibTorch about devices, and before the first backward, which starts its threads. Throws ConfigError, about
// train.device, that names what was tried and what is missing: a library, the driver or a device.
void load_cuda(const CudaPlaces& places);
bool cuda_is_loaded();

// The table of a component: Table begins with a CudaTable and has Table::kRoom. Null before load_cuda(). check() fails
// when it is not the table that this program was built with.
const CudaTable* find_cuda_table(const char* component, int64_t bytes);
template <class Table>
const Table* cuda_table() {
  return reinterpret_cast<const Table*>(find_cuda_table(Table::kRoom, sizeof(Table)));
}

}  // namespace braid::device
