// Matching, and the end of messages when a peer leaves or its connection closes.
#include "braid/comm/transport/match_table.h"

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/transport/grace.h"

namespace braid::comm::transport {
namespace {

template <class Queues>
auto pop_first(Queues& queues, typename Queues::iterator at) {
  auto first = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) queues.erase(at);
  return first;
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

MatchTable::MatchTable(Transport& transport, int rank, int size, FailureState& failures, std::vector<int> host_of_rank)
    : transport_(transport),
      rank_(rank),
      size_(size),
      failures_(failures),
      peers_(size),
      host_of_rank_(std::move(host_of_rank)) {
  try {
    transport.start(*this);
  } catch (const RunError&) {
    stop();  // threads of the transport use this
    throw;
  }
}

void MatchTable::add(const MessagePtr& message) {
  return message->side == Message::Side::Send ? send(message) : receive(message);
}

void MatchTable::leave() {
  std::vector<std::shared_ptr<Arrival>> late;
  {
    const std::scoped_lock hold(mutex_);
    leaving_ = true;
    for (const auto& [route, waiting] : arrivals_) {
      if (route.kind == Route::Kind::Second) continue;
      late.insert(late.end(), waiting.begin(), waiting.end());
    }
  }
  for (const auto& arrival : late) {
    if (arrival->payload != 0) transport_.refuse(arrival->peer, arrival->payload, arrival->header.bytes);
  }
  peers_[rank_].left = true;
  transport_.leave();
}

void MatchTable::stop() {
  stopping_ = true;
  transport_.stop();
  for (Peer& peer : peers_) peer.gone = true;
  const std::scoped_lock hold(mutex_);
  arrivals_.clear();
  receives_.clear();
}

bool MatchTable::lost(const Message& message) const {
  const Peer& peer = peers_[message.route.peer];
  // A message of the peer has matched its receive, if that was posted, before the peer is known to have left. The peer
  // may have the bytes of a send, and have ended, before the thread that issues it has noted that it is done.
  const bool gone = peer.gone, ended = peer.ended, left = peer.left && message.route.kind != Route::Kind::Second;
  const bool posted = message.posted;  // before `done`, which is set first
  if (message.done) return false;
  if (message.side == Message::Side::Send) return posted && (gone || ended || message.refused);
  return gone || (left && posted && !message.matched);
}

std::optional<Call> MatchTable::last_call_of(int64_t group, int peer) const {
  const std::scoped_lock hold(mutex_);
  const auto last = last_calls_.find({group, peer});
  return last == last_calls_.end() ? std::nullopt : std::optional(last->second);
}

bool MatchTable::idle() const {
  const auto busy = [](const Peer& peer) {
    return (peer.sends > 0 && !peer.gone && !peer.ended) || (peer.arriving > 0 && !peer.gone);
  };
  if (std::ranges::any_of(peers_, busy)) return false;
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(receives_, [this](const auto& waiting) {
    return waiting.first.kind != Route::Kind::Batch || lost(*waiting.second.front());
  });
}

void MatchTable::send(const MessagePtr& message) {
  count_send(*message, 1);
  if (message->route.peer != rank_) {
    if (!host_of_rank_.empty() && host_of_rank_[message->route.peer] != host_of_rank_[rank_]) {
      bytes_across_hosts_ += message->bytes;
    }
    transport_.send(message);
    message->posted = true;
    return;
  }
  if (const auto arrival = arrive(rank_, MessageHeader::of(*message), 0)) {
    copy_bytes(arrival->memory(), message->data, message->bytes);
    arrived(*arrival);
  }
  sent(message);
}

void MatchTable::receive(const MessagePtr& message) {
  std::unique_lock hold(mutex_);
  const auto come = arrivals_.find(message->route);
  if (come == arrivals_.end()) {
    receives_[message->route].push_back(message);
    message->posted = true;
    return;
  }
  const std::shared_ptr<Arrival> arrival = pop_first(arrivals_, come);
  if (!agree(*message, *arrival)) return;
  match(*arrival, message);
  const bool complete = arrival->complete;
  hold.unlock();
  message->posted = true;
  if (arrival->payload != 0) transport_.fetch(arrival->peer, arrival->payload, message);
  if (complete) deliver(*arrival);
}

std::shared_ptr<Arrival> MatchTable::arrive(int peer, const MessageHeader& header, int32_t payload) {
  auto arrival = std::make_shared<Arrival>(Arrival{.peer = peer, .header = header, .payload = payload});
  std::unique_lock hold(mutex_);
  if (header.route_kind == Route::Kind::First) last_calls_[{header.group, peer}] = header.call();
  if (const auto waiting = receives_.find(header.route(peer)); waiting != receives_.end()) {
    const MessagePtr receive = pop_first(receives_, waiting);
    if (!agree(*receive, *arrival)) return nullptr;
    match(*arrival, receive);
    hold.unlock();
    if (payload != 0) transport_.fetch(peer, payload, receive);
    return arrival;
  }
  if (leaving_ && header.route_kind != Route::Kind::Second && payload != 0) {
    hold.unlock();
    transport_.refuse(peer, payload, header.bytes);
    return nullptr;
  }
  if (payload == 0) arrival->buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(header.bytes));
  arrivals_[header.route(peer)].push_back(arrival);
  return arrival;
}

void MatchTable::arrived(Arrival& arrival) {
  {
    const std::scoped_lock hold(mutex_);
    arrival.complete = true;
    if (!arrival.receive) return;
  }
  deliver(arrival);
}

void MatchTable::match(Arrival& arrival, const MessagePtr& receive) {
  receive->matched = true;
  arrival.receive = receive;
  ++peers_[arrival.peer].arriving;
}

void MatchTable::deliver(const Arrival& arrival) {
  if (arrival.buffer) copy_bytes(arrival.receive->data, arrival.buffer.get(), arrival.header.bytes);
  finish(arrival.receive);
}

bool MatchTable::agree(const Message& receive, const Arrival& arrival) {
  const Call &mine = receive.call, theirs = arrival.header.call();
  const bool is_batch = receive.route.kind == Route::Kind::Batch;
  const bool equal = is_batch ? mine.type == theirs.type && mine.chunk == theirs.chunk : mine == theirs;
  if (equal && arrival.header.bytes == receive.bytes) return true;
  failures_.fail({rank_, rank_, mismatch_text(mine, arrival.peer, theirs, receive.group)});
  transport_.notify();
  return false;
}

void MatchTable::sent(const MessagePtr& send) {
  count_send(*send, -1);
  finish(send);
}

void MatchTable::refused(const MessagePtr& send) {
  count_send(*send, -1);
  send->refused = true;
  transport_.notify();
}

void MatchTable::count_send(const Message& message, int change) {
  const Route::Kind kind = message.route.kind;
  if (kind == Route::Kind::Batch || kind == Route::Kind::Channel) peers_[message.route.peer].sends += change;
}

void MatchTable::finish(const MessagePtr& message) {
  if (message->side == Message::Side::Receive) --peers_[message->route.peer].arriving;
  message->done = true;
  message->owner->message_done(*message);
}

void MatchTable::left(int peer) {
  if (peers_[peer].left.exchange(true)) return;
  ++num_left_;
  transport_.notify();
}

void MatchTable::ended(int peer) {
  if (!peers_[peer].ended.exchange(true)) transport_.notify();
}

// A message of which the peer has written only a part never becomes done.
void MatchTable::lost(int peer) {
  peers_[peer].ended = true;
  if (peers_[peer].gone.exchange(true)) return;
  left(peer);
  transport_.notify();
}

void MatchTable::closed(int peer, const std::string& why) {
  if (!peers_[peer].ended) {
    for (Grace grace(Grace::kOfConnection); !stopping_ && !failures_.failure() && grace.lasts();) {
      transport_.sleep(transport_.events(), Grace::kNap);
    }
    if (!stopping_ && !failures_.failure()) {
      // Both ranks may be alive and the connection between them cut, so neither is named alone.
      failures_.fail({-1, rank_,
                      cat("the connection between rank ", std::min(peer, rank_), " and rank ", std::max(peer, rank_),
                          " is closed, as rank ", rank_, " sees it (", printable(why, 300), ")")});
    }
  }
  peers_[peer].gone = true;
  left(peer);
}

}  // namespace braid::comm::transport
