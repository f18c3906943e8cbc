// A rank's place in the collectives of a group: one line of rounds, in the order of the calls, the same on all members.
//
//   round      0   1   2 | 3 | 4   5          rounds of three collectives
//              released  combined  posted     how far this rank is; at most Slot::kPerMember between the first and
//                                             the last
//
// It is moved on by whoever has the rank's lock (progress_engine.h) and never waits.
#pragma once

#include <deque>
#include <memory>

#include "braid/comm/shm/collective.h"

namespace braid::comm::shm {

class CollectiveQueue {
 public:
  CollectiveQueue(std::shared_ptr<const Group> group, int rank);

  // The rank has arrived at its next collective.
  void add(std::shared_ptr<Collective> collective);
  // Takes every step that needs no waiting; true when there was one. Fails the world when the members' calls differ.
  bool advance();
  // True when no collective is in flight, or none that can ever complete.
  bool idle() const;

 private:
  struct Entry {
    std::shared_ptr<Collective> collective;
    int64_t first, end;  // rounds
  };

  bool post();
  bool combine();
  bool read();
  Entry* entry_of(int64_t round);
  bool all_reached(std::atomic<int64_t> MemberWords::*count, int64_t value) const;
  void tell_peers() const;
  std::span<Slot* const> slots_of(int64_t round);
  bool agree(const Collective& mine, int64_t round);

  const std::shared_ptr<const Group> group_;
  const int rank_;
  MemberWords& words_;
  std::deque<Entry> entries_;
  int64_t end_ = 0;  // the round after the last entry's
  int64_t posted_ = 0, combined_ = 0, released_ = 0;
  std::vector<Slot*> slots_;
};

}  // namespace braid::comm::shm
