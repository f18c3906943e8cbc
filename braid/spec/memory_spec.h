// The [memory] section: what a rank may hold, and what it computes again or keeps elsewhere in place of
// holding it.
#pragma once

#include <string>

#include "braid/spec/word.h"

namespace braid {

// The place of the optimizer's states between updates. Host: Ren et al., "ZeRO-Offload" (2021); Disk: Rajbhandari et
// al., "ZeRO-Infinity" (2021).
enum class OffloadTo { None, Host, Disk };
constexpr auto words(OffloadTo) { return std::to_array<std::string_view>({"none", "host", "disk"}); }

struct MemorySpec {
  std::string recompute = "none";  // what stages keep of a forward for its backward: recompute.h
  double limit_gb = 0;             // of a rank, in 2^30 bytes: what a measured partition keeps to; 0: none
  OffloadTo offload = OffloadTo::None;

  bool operator==(const MemorySpec&) const = default;
};

}  // namespace braid
