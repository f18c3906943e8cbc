// The [checkpoint] section: how checkpoints are written, and which of them stay.
#pragma once

namespace braid {

struct CheckpointSpec {
  int keep = 0;       // the newest checkpoints, which stay; 0: all
  int keep_best = 0;  // beside those, the ones of the lowest validation loss

  bool async = false;   // written while training goes on, from a copy
  double host_gib = 0;  // async: what that copy may take of a rank's host memory, in 2^30 bytes; 0: what it needs

  bool operator==(const CheckpointSpec&) const = default;
};

}  // namespace braid
