// Refuses a run whose predicted memory or checkpoints do not fit this host, before anything is allocated.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::cli {

struct RunRoom {
  std::string folder;                // where checkpoints are written; empty: another host writes them
  std::vector<std::string> removed;  // files and folders in it that the run removes when it begins
  std::vector<int> host_of_rank;     // empty: all ranks are on this host
  int host = 0;                      // this one
};

// Memory: the sum over the ranks of this host that predict_run() gives, against what the host and its control groups
// have available; runs on devices and runs that cannot be predicted are not judged. Disk: as many checkpoints as
// checkpoint.keep leaves at once and the one that is written, less those that stay in the folder; one where all are
// kept. What the run removes when it begins counts as free. Throws ConfigError with both faults; that of memory names
// the keys whose half saves most, and none of the model where weights or a checkpoint give that.
void refuse_without_room(const RunSpec& spec, const RunRoom& room);

}  // namespace braid::cli
