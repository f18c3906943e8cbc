// One rank's part of an operation between processes, as an object of its own process; what peers need of it lies in
// shared memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/comm/shm/shared_world.h"
#include "braid/comm/waited_work.h"

namespace braid::comm::shm {

// The ranks of a group and the area they have together. The area is free again when all members have let go of it.
struct Group {
  Group(SharedWorld& shared, GroupId area, std::string group_name, std::vector<int> members)
      : world(shared), id(area), name(std::move(group_name)), world_ranks(std::move(members)) {}
  ~Group() { world.release_group(id); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const { return static_cast<int>(world_ranks.size()); }

  SharedWorld& world;
  const GroupId id;
  const std::string name;
  const std::vector<int> world_ranks;
};

class Operation : public RankOperation {
 public:
  // World ranks that have not arrived; in order.
  virtual std::vector<int> missing() const = 0;
  // A world rank whose part is needed and will never come, or -1. Called only while the operation is not done.
  virtual int lost() const = 0;
};

}  // namespace braid::comm::shm
