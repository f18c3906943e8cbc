// The version of braid and of the libraries it was built with.
#pragma once

#include <string>

namespace braid::cli {

// Returns lines with version and commit, LibTorch, and CUDA sources.
std::string version_text();

// Returns the commit that was checked out when the binary was built, "with changes" if files differed from it. Empty if
// it was not built from a checkout. The build generates a separate source for it (cmake/WriteCommit.cmake), so another
// commit recompiles nothing else.
const char* build_commit();

}  // namespace braid::cli
