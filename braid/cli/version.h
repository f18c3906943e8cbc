// The version of braid and of the libraries it was built with.
#pragma once

#include <string>

namespace braid::cli {

// Lines: version and commit, LibTorch, CUDA sources.
std::string version_text();

// The commit that was checked out when the binary was built, "with changes" where files differed from it; empty when it
// was not built from a checkout. A source of its own that the build makes (cmake/WriteCommit.cmake), so that another
// commit compiles nothing else again.
const char* build_commit();

}  // namespace braid::cli
