// An operation of a rank whose peers are in other processes, and the group it belongs to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/call_log.h"

namespace braid::comm::transport {

struct Group {
  int64_t id = 0;  // the same on all ranks, and of no other group of the world at the time
  std::string name;
  std::vector<int> world_ranks;
  int rank = 0;                           // this process's rank in the group
  std::vector<int> nodes = {};            // node of each member; empty: all are on one
  std::shared_ptr<void> lease = nullptr;  // held as long as the group is used (Transport::join_group)
  std::shared_ptr<CallLog> log = std::make_shared<CallLog>();  // of this rank

  int size() const { return static_cast<int>(world_ranks.size()); }
  int world_rank() const { return world_ranks[rank]; }
};

// The reason why an operation is not done.
struct Stall {
  std::string label;         // operation at fault: this one, or one that was issued before it
  std::vector<int> missing;  // world ranks that have not issued it, in ascending order
  int lost = -1;             // a world rank whose part is needed and will never come
  int unfinished = -1;  // a world rank whose message has begun to arrive and goes on no further, if none is missing

  bool names_rank() const { return !missing.empty() || unfinished >= 0; }
};

// One rank's part of an operation.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual std::string label() const = 0;  // name in messages: "all_reduce #17 on tensor"
  virtual Stall stall() const = 0;
  // Returns the last call in the group that is known of a member, by its world rank.
  virtual std::optional<Call> last_call_of(int world_rank) const = 0;
  // Returns the last calls of this rank in the group, oldest first.
  virtual std::vector<std::string> calls() const = 0;
  bool done() const { return done_.load(); }

 protected:
  void finish() { done_.store(true); }

 private:
  std::atomic<bool> done_{false};
};

}  // namespace braid::comm::transport
