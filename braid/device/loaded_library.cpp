// Asks the dynamic loader.
#include "braid/device/loaded_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>

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

}  // namespace braid::device
