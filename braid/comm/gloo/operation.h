// One rank's part of an operation over Gloo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/comm/waited_work.h"

namespace braid::comm::gloo {

struct Group {
  int64_t id = 0;  // the same on all ranks of the world
  std::string name;
  std::vector<int> world_ranks;
  int rank = 0;  // this one's

  int size() const { return static_cast<int>(world_ranks.size()); }
  int world_rank() const { return world_ranks[rank]; }
};

// Why an operation is not done.
struct Stall {
  std::string label;         // of the operation at fault: this one, or one before it
  std::vector<int> missing;  // world ranks that have not arrived at it; in order
  int lost = -1;             // a world rank whose part is needed and will never come
};

class Operation : public RankOperation {
 public:
  virtual Stall stall() const = 0;
};

}  // namespace braid::comm::gloo
