// Reads the version from definitions of the build, and looks for braid's CUDA library.
#include "braid/cli/version.h"

#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/device/cuda_tables.h"
#ifdef BRAID_TORCH
#include <torch/headeronly/version.h>
#endif

namespace braid::cli {
namespace {

std::string torch_text() {
#ifdef BRAID_TORCH
  return cat("LibTorch ", TORCH_VERSION);
#else
  return "without LibTorch: no train, sample and bench";
#endif
}

// Looks for the library itself. It is a separate target, so it may not have been built.
std::string cuda_text() {
  const bool is_built = path_kind(device::cuda_places().braid_library) == PathKind::File;
  return is_built ? "CUDA sources built, as libbraid_cuda.so" : "without CUDA: no libbraid_cuda.so beside the program";
}

}  // namespace

std::string version_text() {
  const std::string commit = build_commit();
  return cat("braid ", BRAID_VERSION, commit.empty() ? "" : ", commit " + commit, "\n", torch_text(), "\n", cuda_text(),
             "\n");
}

}  // namespace braid::cli
