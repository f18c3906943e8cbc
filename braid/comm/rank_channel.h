// A rank's end of a channel to roles outside the mesh. Channels know of no world; this one shares the fate of the
// rank's: a wait ends when the world fails, and a rank that leaves it behind by an exception fails the world first.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "braid/comm/channel.h"
#include "braid/comm/communicator.h"
#include "braid/comm/failure.h"

namespace braid {

class RankChannel final : public Channel {
 public:
  // `world` is any group of the rank's world, whose ranks are threads; it outlives this.
  RankChannel(std::unique_ptr<Channel> channel, Communicator& world);
  // When an exception is on its way, the world is aborted before peers hear of a closed channel: the failure that they
  // learn is this rank's.
  ~RankChannel() override;

  // Whether an exception is on its way that was not when the channel was taken.
  bool left_by_exception() const;

  int endpoint() const override { return channel_->endpoint(); }
  int num_endpoints() const override { return channel_->num_endpoints(); }
  Delivery send(int peer, int tag, ChannelMessage message) override;
  // Throws CommError with the world's first failure, once it has failed.
  ChannelEvent recv_any(int tag, Time deadline) override;
  void close() override { channel_->close(); }

 private:
  void end(const Failure& failure);

  const std::unique_ptr<Channel> channel_;
  Communicator& world_;
  const int exceptions_before_;
  std::mutex mutex_;
  std::optional<Failure> failure_;     // of the world
  std::shared_ptr<void> hears_of_it_;  // last: it calls end()
};

}  // namespace braid
