// The [checkpoint] section: which checkpoints of a run stay.
#pragma once

namespace braid {

struct CheckpointSpec {
  int keep = 0;       // the newest checkpoints, which stay; 0: all
  int keep_best = 0;  // beside those, the ones of the lowest validation loss

  bool operator==(const CheckpointSpec&) const = default;
};

}  // namespace braid
