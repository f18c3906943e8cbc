// A transport over a wire, with a connection to each peer. Threads of the connections move everything while the rank
// computes. A send of up to Connection::kInFrame bytes is done at once, a longer one when the receiver has taken it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "braid/comm/transport/connection.h"
#include "braid/comm/transport/transport.h"

namespace braid::comm::transport {

// Thread-safe.
class WireTransport : public Transport {
 public:
  WireTransport(int rank, int size) : rank_(rank), connections_(size) {}

  void start(Receiver& receiver) override;
  void send(const MessagePtr& message) override { connections_[message->route.peer]->send(message); }
  void fetch(int peer, int32_t payload, const MessagePtr& receive) override {
    connections_[peer]->fetch(payload, receive);
  }
  void refuse(int peer, int32_t payload, int64_t bytes) override { connections_[peer]->refuse(payload, bytes); }
  void leave() override;
  void end() override;
  bool may_stop() const override;
  void stop() override;

  uint64_t events() const override;
  void notify() override;
  void sleep(uint64_t seen, double seconds) override;
  double longest_sleep() const override { return 0.02; }  // a failure of the world may be no event

  int64_t claim_group() override { return static_cast<int64_t>(rank_) << 32 | ++num_groups_; }
  std::shared_ptr<void> join_group(int64_t, int64_t, int) override { return nullptr; }

 protected:
  // Returns true if a peer has left or its connection is gone.
  bool peer_has_left() const;
  // REQUIRES: called before start().
  void set_wire(std::unique_ptr<Wire> wire) { wire_ = std::move(wire); }

 private:
  const int rank_;
  std::unique_ptr<Wire> wire_;                            // null in a world of one
  std::vector<std::unique_ptr<Connection>> connections_;  // by peer; null for the rank itself
  std::atomic<int> num_groups_{0};

  mutable std::mutex mutex_;
  std::condition_variable notified_;
  uint64_t events_ = 0;
};

}  // namespace braid::comm::transport
