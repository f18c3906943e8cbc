// The exceptions of the servers of one process, which its workers throw in place of what they cause.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "braid/base/errors.h"
#include "braid/comm/channel.h"

namespace braid::sync::server {

// Thread-safe.
class ServerErrors {
 public:
  void add(int server, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    errors_.emplace(server, std::move(error));
  }
  // Throws the exception of `server`, if there is one.
  void rethrow(int server) const {
    if (const auto error = of(server)) std::rethrow_exception(error);
  }
  // Throws the exception of any server, if there is one.
  void rethrow_any() const {
    if (const auto error = of(-1)) std::rethrow_exception(error);
  }

 private:
  std::exception_ptr of(int server) const {
    const std::lock_guard lock(mutex_);
    const auto found = server < 0 ? errors_.begin() : errors_.find(server);
    return found == errors_.end() ? nullptr : found->second;
  }

  mutable std::mutex mutex_;
  std::map<int, std::exception_ptr> errors_;  // by server
};

// A worker's endpoint. Servers are the first endpoints. A server that fails records its error before its channel closes
// and before the world fails.
class WorkerChannel final : public Channel {
 public:
  WorkerChannel(std::unique_ptr<Channel> channel, std::shared_ptr<const ServerErrors> errors)
      : channel_(std::move(channel)), errors_(std::move(errors)) {}

  int endpoint() const override { return channel_->endpoint(); }
  int num_endpoints() const override { return channel_->num_endpoints(); }
  Delivery send(int peer, int tag, ChannelMessage message) override {
    return guarded([&] {
      const Delivery delivery = channel_->send(peer, tag, std::move(message));
      if (delivery == Delivery::PeerClosed) errors_->rethrow(peer);
      return delivery;
    });
  }
  ChannelEvent recv_any(int tag, Time deadline) override {
    return guarded([&] {
      ChannelEvent event = channel_->recv_any(tag, deadline);
      if (event.kind == ChannelEvent::Kind::Closed) errors_->rethrow(event.peer);
      return event;
    });
  }
  void close() override { channel_->close(); }

 private:
  template <class Call>
  std::invoke_result_t<Call> guarded(const Call& call) const {
    try {
      return call();
    } catch (const CommError&) {
      errors_->rethrow_any();
      throw;
    }
  }

  const std::unique_ptr<Channel> channel_;
  const std::shared_ptr<const ServerErrors> errors_;
};

}  // namespace braid::sync::server
