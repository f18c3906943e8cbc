// Asks the compiler.
#include "braid/cli/version.h"

#include "braid/base/text.h"
#ifdef BRAID_TORCH
#include <torch/headeronly/version.h>
#endif

namespace braid {
namespace {

std::string torch_text() {
#ifdef BRAID_TORCH
  return cat("LibTorch ", TORCH_VERSION);
#else
  return "without LibTorch: no train, sample and bench";
#endif
}

std::string cuda_text() {
#ifdef BRAID_CUDA_SOURCES
  return "CUDA sources built, as libbraid_cuda.so";
#else
  return "CUDA sources left out";
#endif
}

}  // namespace

std::string version_text() {
  const std::string commit = build_commit();
  return cat("braid ", BRAID_VERSION, commit.empty() ? "" : ", commit " + commit, "\n", torch_text(), "\n", cuda_text(),
             "\n");
}

}  // namespace braid
