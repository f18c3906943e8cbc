// Moving messages on: pushing bytes into rings, taking them out, matching headers with receives.
#include "braid/comm/shm/message_streams.h"

#include "braid/base/text.h"
#include "braid/comm/shm/message_stream.h"

namespace braid::comm::shm {
namespace {

constexpr int64_t kPieceBytes = 128 << 10;  // after each, the other side may go on

template <class Queues>
auto pop(Queues& queues, typename Queues::iterator at) {
  auto first = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) queues.erase(at);
  return first;
}

}  // namespace

MessageStreams::MessageStreams(SharedWorld& world, int rank) : world_(world), rank_(rank), lanes_(world.size()) {}

void MessageStreams::add(std::shared_ptr<PointToPoint> message) {
  message->set_arrived();
  if (!message->sends()) return receive(std::move(message));
  const int peer = message->route().peer;
  lanes_[peer].sends.push_back(std::move(message));
  world_.pair(rank_, peer).issued.fetch_add(1);
}

bool MessageStreams::advance() {
  bool any = false;
  for (int peer = 0; peer < world_.size(); ++peer) {
    while (!world_.failed() && push(peer)) any = true;
    while (!world_.failed() && pull(peer)) any = true;
  }
  return any;
}

// A rank's end, or that it has left, is visible before what is read after it here.
void MessageStreams::mark_lost() {
  for (int peer = 0; peer < world_.size(); ++peer) {
    if (!world_.ended(peer)) continue;
    for (const auto& send : lanes_[peer].sends) send->set_never();
  }
  for (const auto& [route, receives] : receives_) {
    if (!world_.left(route.peer)) continue;
    if (lanes_[route.peer].headers < world_.pair(route.peer, rank_).issued.load()) continue;
    for (const auto& receive : receives) receive->set_never();
  }
}

bool MessageStreams::idle() const {
  for (const Lane& lane : lanes_) {
    if (!lane.sends.empty() && lane.sends.front()->lost() < 0) return false;
    if (lane.incoming && lane.incoming->receive) return false;
  }
  for (const auto& [route, receives] : receives_) {
    if (receives.front()->lost() < 0) return false;
  }
  return true;
}

bool MessageStreams::push(int peer) {
  Lane& lane = lanes_[peer];
  if (lane.sends.empty()) return false;
  MessageStream stream(world_.pair(rank_, peer), world_.ring(rank_, peer));
  PointToPoint& send = *lane.sends.front();
  int64_t room = stream.room();
  if (lane.sent < 0) {
    if (room < static_cast<int64_t>(sizeof(Header))) return false;
    const Header header{send.route().group, send.route().tag, static_cast<int32_t>(send.type()), send.count(),
                        send.bytes()};
    stream.write(&header, sizeof header);
    room -= sizeof header;
    lane.sent = 0;
  } else if (room == 0) {
    return false;
  }
  const int64_t piece = std::min({room, kPieceBytes, send.bytes() - lane.sent});
  stream.write(send.data() + lane.sent, piece);
  lane.sent += piece;
  if (lane.sent == send.bytes()) {
    send.complete();
    lane.sends.pop_front();
    lane.sent = -1;
    tell(rank_);  // another thread of this rank may sleep for it
  }
  tell(peer);
  return true;
}

bool MessageStreams::pull(int peer) {
  Lane& lane = lanes_[peer];
  MessageStream stream(world_.pair(peer, rank_), world_.ring(peer, rank_));
  int64_t filled = stream.filled();
  if (!lane.incoming) {
    if (filled < static_cast<int64_t>(sizeof(Header))) return false;
    Header header;
    stream.read(&header, sizeof header);
    filled -= sizeof header;
    begin(peer, header);
    if (world_.failed()) return true;
  } else if (filled == 0) {
    return false;
  }
  Incoming& incoming = *lane.incoming;
  const int64_t piece = std::min({filled, kPieceBytes, incoming.header.bytes - incoming.received});
  stream.read(incoming.target() + incoming.received, piece);
  incoming.received += piece;
  if (incoming.complete()) {
    end(incoming);
    lane.incoming = nullptr;
  }
  tell(peer);
  return true;
}

void MessageStreams::begin(int peer, const Header& header) {
  auto incoming = std::make_shared<Incoming>();
  incoming->header = header;
  const MessageRoute route{header.group, peer, header.tag};
  if (const auto waiting = receives_.find(route); waiting != receives_.end()) {
    meet(*incoming, pop(receives_, waiting));
  } else {
    incoming->kept = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(header.bytes));
    unmet_[route].push_back(incoming);
  }
  ++lanes_[peer].headers;
  lanes_[peer].incoming = std::move(incoming);
}

void MessageStreams::receive(std::shared_ptr<PointToPoint> message) {
  const auto come = unmet_.find(message->route());
  if (come == unmet_.end()) {
    const MessageRoute route = message->route();
    receives_[route].push_back(std::move(message));
    return;
  }
  const std::shared_ptr<Incoming> incoming = pop(unmet_, come);
  meet(*incoming, std::move(message));
  if (incoming->complete()) end(*incoming);
}

void MessageStreams::meet(Incoming& incoming, std::shared_ptr<PointToPoint> receive) {
  if (!agrees(incoming.header, *receive)) return;
  receive->set_met();
  incoming.receive = std::move(receive);
}

// All its bytes are here.
void MessageStreams::end(Incoming& incoming) {
  if (!incoming.receive) return;
  if (incoming.kept && incoming.header.bytes > 0) {
    std::memcpy(incoming.receive->data(), incoming.kept.get(), static_cast<size_t>(incoming.header.bytes));
  }
  incoming.receive->complete();
  incoming.receive = nullptr;
  tell(rank_);
}

bool MessageStreams::agrees(const Header& header, const PointToPoint& receive) {
  const auto sent = static_cast<at::ScalarType>(header.type);
  if (sent == receive.type() && header.count == receive.count()) return true;
  world_.fail({rank_, rank_,
               cat("receives ", c10::toString(receive.type()), "[", receive.count(), "] where rank ",
                   receive.route().peer, " sends ", c10::toString(sent), "[", header.count, "]")});
  return false;
}

}  // namespace braid::comm::shm
