// The transport of ranks that are processes of one host: collectives in slots of shared memory, messages in rings.
//
// It has no threads. All operations of a rank, in all its groups, make progress whenever any thread of the rank makes a
// call, waits, or calls Work::done(). While the rank computes, they make none: peers can read what lies in shared
// memory (its slots of two rounds of a collective, its rings of messages) and wait for the rest.
//
// From each rank to each other there is one ring of bytes (message_stream.h). A deadlock of all ranks ends at the
// deadline.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "braid/comm/shm/shared_world.h"
#include "braid/comm/shm/slot_collectives.h"
#include "braid/comm/transport/message_stream.h"
#include "braid/comm/transport/transport.h"

namespace braid::comm::shm {

// Thread-safe.
class ShmTransport final : public transport::Transport {
 public:
  // The transport of the calling process, which is `rank`. REQUIRES: `world` outlives this.
  ShmTransport(SharedWorld& world, int rank);

  SharedWorld& world() const { return world_; }

  void start(Receiver& receiver) override { receiver_ = &receiver; }
  void send(const transport::MessagePtr& message) override;
  void fetch(int peer, int32_t payload, const transport::MessagePtr& receive) override;
  void refuse(int, int32_t, int64_t) override {}
  void leave() override { world_.leave(rank_); }
  void end() override { world_.end(rank_); }
  bool may_stop() const override { return true; }  // peers find in shared memory what they have not taken yet
  void stop() override;

  uint64_t events() const override { return world_.notifier(rank_).events(); }
  void notify() override { world_.notifier(rank_).notify(); }
  void sleep(uint64_t seen, double seconds) override;
  double longest_sleep() const override { return Notifier::kLongestSleep; }
  void advance() override;

  int64_t world_group() const override { return SharedWorld::kWorldGroup.packed(); }
  int64_t claim_group() override { return world_.claim_group().packed(); }
  std::shared_ptr<void> join_group(int64_t claimed, int64_t id, int num_members) override;
  std::shared_ptr<transport::CollectiveQueue> collectives(std::shared_ptr<const transport::Group> group) override;

  // For SlotCollectives:
  void add(SlotCollectives& collectives);
  void remove(SlotCollectives& collectives);
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  // Makes a change under the lock, then advances all operations.
  template <class Change>
  void change(const Change& change) {
    const std::scoped_lock hold(mutex_);
    if (stopped_) return;
    change();
    move_on();
  }

 private:
  void move_on();
  bool move(int peer);
  void look_for_end(int peer);

  SharedWorld& world_;
  const int rank_;
  Receiver* receiver_ = nullptr;
  std::mutex mutex_;
  bool stopped_ = false;
  std::vector<transport::MessageStream> streams_;  // by peer
  std::vector<SlotCollectives*> collectives_;
};

}  // namespace braid::comm::shm
