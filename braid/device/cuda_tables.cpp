// Opens the CUDA libraries, and checks their tables before anything calls them.
#include "braid/device/cuda_tables.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/device/cuda_services.h"

namespace braid::device {
namespace {

struct Search {
  std::string file_name, folder;
};

int compare(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::filesystem::path path(info->dlpi_name);
  if (path.filename() != search.file_name) return 0;
  search.folder = path.parent_path().string();
  return 1;
}

}  // namespace

LoadedLibrary::LoadedLibrary(const std::string& path, Symbols symbols)
    : handle_(dlopen(path.c_str(), RTLD_NOW | (symbols == Symbols::Shared ? RTLD_GLOBAL : RTLD_LOCAL))) {
  if (handle_) return;
  const char* why = dlerror();
  problem_ = why ? why : "the loader does not say why";
}

void* LoadedLibrary::symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

std::string folder_of_loaded(const std::string& file_name) {
  Search search{file_name, ""};
  dl_iterate_phdr(compare, &search);
  return search.folder;
}

std::string folder_of_program() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).parent_path().string();
}

namespace {

// The CUDA library that this process has opened, the component's only global state. LibTorch's own list of devices is
// also per process.
struct Opened {
  std::mutex mutex;
  std::atomic<CudaTableEntry> entry = nullptr;
};

Opened& opened() {
  static Opened of_process;
  return of_process;
}

[[noreturn]] void refuse(const std::string& rule) {
  throw ConfigError({{"train.device", "\"cuda\"", rule, "\"cpu\""}});
}

LoadedLibrary open_or_refuse(const std::string& path, Symbols symbols) {
  LoadedLibrary library(path, symbols);
  if (!library.problem().empty())
    refuse(cat("needs ", path, ", which cannot be loaded (docs/cuda.md says what it takes): ", library.problem()));
  return library;
}

}  // namespace

std::string table_problem(const CudaTable* table, int64_t bytes) {
  if (table == nullptr) return "it has no such table";
  if (table->version != kCudaTableVersion || table->bytes != bytes) {
    return cat("its table has version ", table->version, " and ", table->bytes, " bytes; this program needs version ",
               kCudaTableVersion, " and ", bytes, " bytes");
  }
  const auto* entries = reinterpret_cast<const char*>(table + 1);
  const auto num_entries = (bytes - static_cast<int64_t>(sizeof(CudaTable))) / static_cast<int64_t>(sizeof(void*));
  for (int64_t i = 0; i < num_entries; ++i) {
    const void* entry = nullptr;
    std::memcpy(&entry, entries + i * static_cast<int64_t>(sizeof(void*)), sizeof(void*));
    if (entry == nullptr) return cat("entry ", i, " of its table is empty");
  }
  return "";
}

CudaPlaces cuda_places() {
  const std::string torch = folder_of_loaded("libtorch_cpu.so");
  const std::filesystem::path program = folder_of_program(), name = "libbraid_cuda.so";
  const std::filesystem::path installed = program.parent_path() / "lib/braid" / name;
  std::error_code failure;
  const bool is_installed =
      !std::filesystem::exists(program / name, failure) && std::filesystem::exists(installed, failure);
  return {(torch.empty() ? "" : torch + "/") + "libtorch_cuda.so",
          (is_installed ? installed : program / name).string()};
}

void load_cuda(const CudaPlaces& places) {
  const std::lock_guard<std::mutex> lock(opened().mutex);
  if (opened().entry.load()) return;
  open_or_refuse(places.torch_library, Symbols::Shared);
  const LoadedLibrary library = open_or_refuse(places.braid_library, Symbols::Private);
  const auto entry = reinterpret_cast<CudaTableEntry>(library.symbol(kCudaTableEntryName));
  if (entry == nullptr) refuse(cat("needs ", places.braid_library, " to export ", kCudaTableEntryName));
  const CudaTable* table = entry(CudaServices::kRoom);
  if (const std::string wrong = table_problem(table, sizeof(CudaServices)); !wrong.empty()) {
    refuse(cat("needs another ", places.braid_library, ": ", wrong));
  }
  const std::string missing = reinterpret_cast<const CudaServices*>(table)->problem();
  if (!missing.empty()) refuse(cat("needs a CUDA device: ", missing));
  opened().entry.store(entry);
}

bool cuda_is_loaded() { return opened().entry.load() != nullptr; }

const CudaTable* find_cuda_table(const char* component, int64_t bytes) {
  const CudaTableEntry entry = opened().entry.load(std::memory_order_acquire);
  if (entry == nullptr) return nullptr;
  const CudaTable* table = entry(component);
  check(table && table->version == kCudaTableVersion && table->bytes == bytes,
        "libbraid_cuda.so is of the same build as the program");
  return table;
}

void* cuda_stream(int device) { return cuda_table<CudaServices>()->stream(device); }

void require_launched(const char* why) {
  if (why) throw RunError(cat("CUDA refused a kernel: ", why));
}

}  // namespace braid::device
