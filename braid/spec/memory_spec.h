// The [memory] section: what a rank may hold, and what it computes again in place of holding it.
#pragma once

#include <string>

namespace braid {

struct MemorySpec {
  std::string recompute = "none";  // what stages keep of a forward for its backward: recompute.h
  double limit_gb = 0;             // of a rank, in 2^30 bytes: what a measured partition keeps to; 0: none

  bool operator==(const MemorySpec&) const = default;
};

}  // namespace braid
