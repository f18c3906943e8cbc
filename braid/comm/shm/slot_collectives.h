// Collectives in shared memory. Each member writes a round into its slot; the others read it there, so most bytes are
// copied once.
//
// A round has three steps. A member begins a step when all members have done the step before:
//
//   post      copies what the others need of this rank's tensor into its slot
//   combine   all_reduce in parts only: combines this rank's part and writes it into its slot
//   read      copies or combines what this rank needs into its tensor
//
//   round      0   1   2 | 3 | 4   5          rounds of three collectives
//              released  combined  posted     how far this rank has come; at most Slot::kPerMember rounds lie between
//                                             the first and the last
//
// Nothing here waits. ShmTransport::advance() takes all steps for which the peers are ready.
#pragma once

#include <deque>
#include <memory>

#include "braid/comm/shm/shared_world.h"
#include "braid/comm/transport/collective.h"

namespace braid::comm::shm {

class ShmTransport;

class SlotCollectives final : public transport::CollectiveQueue {
 public:
  // REQUIRES: `transport` outlives this.
  SlotCollectives(std::shared_ptr<const transport::Group> group, ShmTransport& transport);
  ~SlotCollectives() override;

  Cut cut(const Call& call) const override;
  void add(std::shared_ptr<transport::Collective> collective) override;
  void start_all() override {}
  bool idle() const override;
  transport::Stall stall(const transport::Collective& collective) const override;
  std::optional<Call> last_call_of(int world_rank) const override;
  void stop() override;

  // Takes every step for which the peers are ready; returns true if there was one. Fails the world if the members'
  // calls differ. REQUIRES: the transport's lock is held.
  bool advance();

 private:
  struct Entry {
    std::shared_ptr<transport::Collective> collective;
    int64_t first, end;  // rounds
  };

  bool post();
  bool combine();
  bool read();
  Entry* entry_of(int64_t round);
  bool all_reached(std::atomic<int64_t> MemberWords::*count, int64_t value) const;
  bool has_arrived(const transport::Collective& collective, int member) const;
  int lost_rank(const transport::Collective& collective) const;
  void notify_peers() const;
  Slot& slot(int member, int64_t round) const;
  bool agree(const transport::Collective& mine, int64_t round);
  void set_inputs(int64_t round, int64_t offset);

  ShmTransport& transport_;
  SharedWorld& world_;
  const GroupId id_;
  const int rank_;
  MemberWords& words_;
  std::deque<Entry> entries_;
  int64_t end_ = 0;  // the round after the last entry's
  int64_t posted_ = 0, combined_ = 0, released_ = 0;
  std::vector<const void*> inputs_;  // by member
};

}  // namespace braid::comm::shm
