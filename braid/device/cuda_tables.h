// The tables of functions in libbraid_cuda.so, one for each component that computes on a device. The program does not
// link that library or libtorch_cuda.so, because the latter cannot be loaded on a machine without CUDA libraries.
// load_cuda() opens both:
//
//   braid ----------------- libtorch_cpu.so         always
//     | load_cuda()
//     +-- opens ----------- libtorch_cuda.so        beside libtorch_cpu.so; brings cuBLAS, cuDNN, NCCL
//     +-- opens ----------- libbraid_cuda.so        beside the program, or in ../lib/braid; it exports one function,
//                                                   braid_cuda_table(component)
#pragma once

#include <cstdint>
#include <string>

namespace braid::device {

// The visibility of a library's symbols. Shared: libraries opened later can use them.
enum class Symbols { Private, Shared };

// A shared library opened while the program runs. It is never closed, because a library that has started threads or a
// device cannot be unloaded safely.
class LoadedLibrary {
 public:
  LoadedLibrary() = default;
  // Opens the library and binds every symbol at once, so that a missing symbol is an error here and not later. If
  // opening fails, problem() gives the reason.
  LoadedLibrary(const std::string& path, Symbols symbols);

  // Returns the loader's error text if the library could not be opened; empty if it is open.
  const std::string& problem() const { return problem_; }
  // Returns the address of a symbol; null if the library has none of that name.
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string problem_;
};

// Returns the folder of a library that this process has loaded, by its file name ("libtorch_cpu.so"). Empty if it is
// not loaded.
std::string folder_of_loaded(const std::string& file_name);
// Returns the folder of the running program.
std::string folder_of_program();

// The header of a table. Only function pointers follow it, and none is null.
struct CudaTable {
  int64_t version;
  int64_t bytes;  // size of the whole table in bytes
};

// Must change with every change of a table, or of a type that is passed through one.
inline constexpr int64_t kCudaTableVersion = 3;

// The type of extern "C" braid_cuda_table, which returns the table of `component`, or null if there is none of that
// name.
using CudaTableEntry = const CudaTable* (*)(const char* component);
inline constexpr const char* kCudaTableEntryName = "braid_cuda_table";

// Checks a table from a library, which must have `bytes` bytes. Returns the fault; empty if there is none.
std::string table_problem(const CudaTable* table, int64_t bytes);

struct CudaPlaces {
  std::string torch_library;  // libtorch_cuda.so
  std::string braid_library;  // libbraid_cuda.so
};
// Returns the paths of both: libtorch_cuda.so beside the loaded libtorch_cpu.so, libbraid_cuda.so beside the program or
// in ../lib/braid.
CudaPlaces cuda_places();

// Opens both libraries and checks that a device can be used, once per process; later calls do nothing. REQUIRES:
// nothing has asked LibTorch about devices yet, and no backward, which starts LibTorch's threads, has run. Throws a
// ConfigError about train.device that names the library tried and what is missing: a library, the driver or a device.
void load_cuda(const CudaPlaces& places);
bool cuda_is_loaded();

// Returns the table of a component; null before load_cuda(). check() fails if it is not the table that this program was
// built with. REQUIRES: Table begins with a CudaTable and has Table::kRoom.
const CudaTable* find_cuda_table(const char* component, int64_t bytes);
template <class Table>
const Table* cuda_table() {
  return reinterpret_cast<const Table*>(find_cuda_table(Table::kRoom, sizeof(Table)));
}

}  // namespace braid::device
