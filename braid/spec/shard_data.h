// Over how many data ranks one copy of the parameters is sharded.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// 1 where nothing is sharded.
inline int shard_data(const RunSpec& spec) {
  if (spec.sync.zero == 0) return 1;
  return spec.sync.zero_group == 0 ? spec.mesh.data : spec.sync.zero_group;
}

}  // namespace braid::spec
