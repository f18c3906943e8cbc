// Shared libraries opened while the program runs.
#pragma once

#include <string>

namespace braid::device {

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

}  // namespace braid::device
