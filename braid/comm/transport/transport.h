// Moves bytes between one rank and all others of its world. Shared memory, TCP, Gloo and MPI implement it; matching,
// collectives, waiting and deadlines are written above it, once for all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "braid/comm/failure_state.h"
#include "braid/comm/transport/message.h"
#include "braid/comm/transport/operation.h"

namespace braid::comm::transport {

class CollectiveQueue;

// An all-reduce of the transport itself, for one group, in an order of sums of its own. Thread-safe.
class OwnAllReduce {
 public:
  virtual ~OwnAllReduce() = default;
  // Sums `tensor` over the group, in place, and calls `done` on another thread. All members add the same tensors in the
  // same order.
  virtual void add(const at::Tensor& tensor, std::function<void()> done) = 0;
  // Blocks until no thread touches a tensor. What is not done by then never will be.
  virtual void stop() = 0;
};

// Thread-safe.
class Transport {
 public:
  // Receives what arrives, on any thread. Calls for one peer follow one another.
  class Receiver {
   public:
    // A message begins to arrive. If `payload` is 0, the transport writes its bytes to Arrival::memory() and then calls
    // arrived(); else they come after fetch(). Returns null if the message is of no use any more.
    virtual std::shared_ptr<Arrival> arrive(int peer, const MessageHeader& header, int32_t payload) = 0;
    virtual void arrived(Arrival& arrival) = 0;
    // The bytes that fetch() asked for are there.
    virtual void fetched(const MessagePtr& receive) = 0;
    // The memory of the send is the caller's again.
    virtual void sent(const MessagePtr& send) = 0;
    // The peer will never receive it.
    virtual void refused(const MessagePtr& send) = 0;
    // The peer makes no more calls: it issues no more messages on the kinds Batch and First.
    virtual void left(int peer) = 0;
    // The peer sends nothing more and receives nothing more.
    virtual void ended(int peer) = 0;
    // The peer's process has died, and the world goes on without it; nothing arrives after this.
    virtual void lost(int peer) {}
    // The connection to the peer is gone; nothing arrives after this.
    virtual void closed(int peer, const std::string& why) = 0;

   protected:
    ~Receiver() = default;
  };

  virtual ~Transport() = default;

  // Called once, before all others. Throws RunError if the system has no threads for the transport.
  virtual void start(Receiver& receiver) = 0;

  // Sends a message to message->route.peer, which is another rank. Does not block. Receiver::sent() or refused()
  // follows, possibly before this returns. Messages to one peer arrive in the order of their headers.
  virtual void send(const MessagePtr& message) = 0;
  // Moves the bytes of `payload` into the receive. Receiver::fetched() follows.
  virtual void fetch(int peer, int32_t payload, const MessagePtr& receive) = 0;
  // Takes the payload of `bytes` bytes and drops it. Receiver::refused() follows at the peer.
  virtual void refuse(int peer, int32_t payload, int64_t bytes) = 0;

  // This rank makes no more calls. All peers get to know, after all that was sent before.
  virtual void leave() = 0;
  // This rank sends and receives nothing more.
  virtual void end() = 0;
  // After end(): stop() takes nothing from a peer.
  virtual bool may_stop() const = 0;
  // Returns when no thread touches the memory of a message any more, now or later.
  virtual void stop() = 0;

  // Waiting: a thread reads events(), calls advance(), looks at what it waits for, and sleeps. So it misses no event.
  virtual uint64_t events() const = 0;
  // Counts an event and wakes all threads of this rank that sleep.
  virtual void notify() = 0;
  // Returns after an event that `seen` does not count, after `seconds`, or after longest_sleep().
  virtual void sleep(uint64_t seen, double seconds) = 0;
  virtual double longest_sleep() const = 0;
  // Moves everything as far as it goes. A transport with threads of its own needs none of these calls.
  virtual void advance() {}

  virtual int64_t world_group() const { return 0; }
  // Returns a number that no other group of the world has at the time, for a group of which this rank may be the first.
  virtual int64_t claim_group() = 0;
  // Called by every rank after a split: it has claimed `claimed`, and is now in group `id`. If both are equal, the
  // group has `num_members` ranks. Returns what the members hold while they use the group.
  virtual std::shared_ptr<void> join_group(int64_t claimed, int64_t id, int num_members) = 0;

  // Returns collectives of the transport's own; null if they are to be made of messages.
  virtual std::shared_ptr<CollectiveQueue> collectives(std::shared_ptr<const Group>) { return nullptr; }
  // Returns true if own_all_reduce() can make `call`, an all-reduce. The same on all ranks.
  virtual bool has_own_sum(const Call&) const { return false; }
  // Calls `stopped` when no sum will be done any more. Returns null, and fails the world, if the system has no thread
  // for it.
  virtual std::unique_ptr<OwnAllReduce> own_all_reduce(std::shared_ptr<const Group>,
                                                       std::function<void()> /*stopped*/) {
    return nullptr;
  }
};

}  // namespace braid::comm::transport
