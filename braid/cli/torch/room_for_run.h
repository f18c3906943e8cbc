// Refuses a run whose predicted memory or checkpoints do not fit this host, before anything is allocated.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::cli {

struct RunRoom {
  std::string folder;                // folder for checkpoints; empty: another host writes them
  std::vector<std::string> removed;  // files and folders in `folder` that the run removes when it begins
  std::vector<int> host_of_rank;     // host of each rank; empty: all ranks are on this host
  int host = 0;                      // this host's number
};

// Throws ConfigError if memory or disk are too small, with both problems if both are.
// * Memory: the sum that predict_run() gives for the ranks of this host must be available on the host and in its
//   control groups. Runs on devices and runs that cannot be predicted are not checked. The error names the keys whose
//   halving saves most memory. It names no keys of the model if the model comes from weights or a checkpoint.
// * Disk: there must be space for as many checkpoints as checkpoint.keep leaves at once, plus the one being written,
//   less those that stay in the folder. If all checkpoints are kept, there must be space for one. Files that the run
//   removes when it begins count as free space. Folders of optimizer states on disk must have room for them too.
void refuse_without_room(const RunSpec& spec, const RunRoom& room);

}  // namespace braid::cli
