// A failure of the world closes this endpoint, which wakes waiting threads. recv_any() then throws the failure.
#include "braid/comm/rank_channel.h"

#include <exception>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/thread_ranks.h"

namespace braid::comm {

RankChannel::RankChannel(std::unique_ptr<Channel> channel, Communicator& world)
    : channel_(std::move(channel)), world_(world), exceptions_before_(std::uncaught_exceptions()) {
  check(world.thread_ranks() != nullptr, "channels are between threads");
  hears_of_it_ = world.thread_ranks()->on_failure([this](const Failure& failure) { end(failure); });
}

RankChannel::~RankChannel() {
  if (left_by_exception()) world_.abort("ends by an exception");
}

bool RankChannel::left_by_exception() const { return std::uncaught_exceptions() > exceptions_before_; }

Delivery RankChannel::send(int peer, int tag, ChannelMessage message) {
  return channel_->send(peer, tag, std::move(message));
}

ChannelEvent RankChannel::recv_any(int tag, Time deadline) {
  ChannelEvent event = channel_->recv_any(tag, deadline);
  if (event.kind != ChannelEvent::Kind::Closed || event.peer != endpoint()) return event;
  const std::lock_guard lock(mutex_);
  if (!failure_) return event;
  throw CommError({cat("waiting at endpoint ", endpoint(), " of a channel"), failure_->rank, 0, failure_->why});
}

void RankChannel::end(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
  }
  channel_->close();
}

}  // namespace braid::comm
