// Connections to all peers, and where threads of the rank sleep.
#include "braid/comm/transport/wire_transport.h"

#include <algorithm>
#include <chrono>

namespace braid::comm::transport {

void WireTransport::start(Receiver& receiver) {
  for (int peer = 0; peer < static_cast<int>(connections_.size()); ++peer) {
    if (peer != rank_) connections_[peer] = std::make_unique<Connection>(*wire_, peer, *this, receiver);
  }
  for (const auto& connection : connections_) {
    if (connection) connection->start();
  }
}

void WireTransport::leave() {
  for (const auto& connection : connections_) {
    if (connection) connection->send(Frame::Kind::Leave);
  }
}

void WireTransport::end() {
  for (const auto& connection : connections_) {
    if (connection) connection->end();
  }
}

bool WireTransport::may_stop() const {
  return std::ranges::all_of(connections_, [](const auto& connection) { return !connection || connection->ended(); });
}

bool WireTransport::peer_has_left() const {
  return std::ranges::any_of(connections_,
                             [](const auto& connection) { return connection && connection->peer_left(); });
}

void WireTransport::stop() {
  if (wire_) wire_->abort();
  for (const auto& connection : connections_) {
    if (connection) connection->stop();
  }
}

uint64_t WireTransport::events() const {
  const std::scoped_lock hold(mutex_);
  return events_;
}

void WireTransport::notify() {
  const std::scoped_lock hold(mutex_);
  ++events_;
  notified_.notify_all();
}

void WireTransport::sleep(uint64_t seen, double seconds) {
  if (wire_) wire_->begin_wait();
  std::unique_lock hold(mutex_);
  const std::chrono::duration<double> most(std::min(seconds, longest_sleep()));
  notified_.wait_for(hold, most, [&] { return events_ != seen; });
  hold.unlock();
  if (wire_) wire_->end_wait();
}

}  // namespace braid::comm::transport
