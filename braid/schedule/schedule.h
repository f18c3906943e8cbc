// A pipeline step as data: what each rank does, in order. No torch, no communicator, no clock.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/action.h"

namespace braid {

using Program = std::vector<Action>;  // one rank's actions in order

struct Schedule {
  std::string name;
  int num_stages = 0;
  int num_microbatches = 0;
  std::vector<int> stage_rank;    // the rank that owns each stage
  std::vector<Program> programs;  // one per rank

  int num_ranks() const { return static_cast<int>(programs.size()); }
  // The owner. Takes the microbatch because a bidirectional schedule puts a stage on two ranks.
  int rank_of(int stage, int micro) const;
  bool operator==(const Schedule&) const = default;
};

}  // namespace braid
