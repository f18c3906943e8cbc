// How many data ranks share out one copy of the parameters.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid {

// 1 where nothing is shared out.
inline int shard_data(const RunSpec& spec) {
  if (spec.sync.zero == 0) return 1;
  return spec.sync.zero_group == 0 ? spec.mesh.data : spec.sync.zero_group;
}

}  // namespace braid
