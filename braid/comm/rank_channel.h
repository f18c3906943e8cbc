// A rank's endpoint of a channel to roles outside the mesh, tied to the rank's world. If the world fails, waits for a
// message end. If an exception destroys the endpoint, it aborts the world first.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "braid/comm/channel.h"
#include "braid/comm/communicator.h"
#include "braid/comm/failure_state.h"

namespace braid::comm {

class RankChannel final : public Channel {
 public:
  // `world` is any group of the rank's world. REQUIRES: its ranks are threads, and it outlives this.
  RankChannel(std::unique_ptr<Channel> channel, Communicator& world);
  // If left_by_exception(), aborts the world before the channel closes. So peers learn of this rank's failure instead
  // of a closed channel.
  ~RankChannel() override;

  // Returns true while an exception thrown after construction unwinds the stack.
  bool left_by_exception() const;

  int endpoint() const override { return channel_->endpoint(); }
  int num_endpoints() const override { return channel_->num_endpoints(); }
  Delivery send(int peer, int tag, ChannelMessage message) override;
  // Throws CommError with the world's first failure once the world has failed.
  ChannelEvent recv_any(int tag, Time deadline) override;
  void close() override { channel_->close(); }

 private:
  void end(const Failure& failure);

  const std::unique_ptr<Channel> channel_;
  Communicator& world_;
  const int exceptions_before_;
  std::mutex mutex_;
  std::optional<Failure> failure_;  // first failure of the world
  // Registration of end(). It is the last member, and so destroyed before the members that end() uses.
  std::shared_ptr<void> hears_of_it_;
};

}  // namespace braid::comm
