// Matching, and what becomes of parcels when a peer leaves or its connection closes.
#include "braid/comm/gloo/match_table.h"

#include <algorithm>
#include <cstring>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm::gloo {
namespace {

template <class Queues>
auto pop_first(Queues& queues, typename Queues::iterator at) {
  auto first = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) queues.erase(at);
  return first;
}

MessageHeader header_of(const Message& parcel) {
  const Call& call = parcel.call;
  return {.what = MessageHeader::What::Parcel,
          .line = parcel.route.line,
          .group = parcel.route.group,
          .bytes = parcel.bytes,
          .chunk = call.chunk,
          .tag = parcel.route.tag,
          .kind = static_cast<int32_t>(call.kind),
          .op = static_cast<int32_t>(call.op),
          .root = call.root,
          .type = static_cast<int32_t>(call.type)};
}

}  // namespace

MatchTable::MatchTable(Engine* engine, int rank, int size, FailureState& failures, Notifier& news)
    : engine_(engine), rank_(rank), size_(size), failures_(failures), news_(news), peers_(size) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank)
      peers_[peer].lane = std::make_unique<Connection>(*engine, peer, static_cast<Connection::Receiver&>(*this));
  }
  try {
    for (Peer& peer : peers_) {
      if (peer.lane) peer.lane->start();
    }
  } catch (const RunError&) {
    stop();  // threads of other connections use this
    throw;
  }
}

MatchTable::~MatchTable() { stop(); }

void MatchTable::add(const MessagePtr& parcel) {
  return parcel->side == Message::Side::Send ? send(parcel) : receive(parcel);
}

void MatchTable::leave() {
  std::vector<std::pair<int, MessageHeader>> late;
  {
    const std::scoped_lock hold(mutex_);
    leaving_ = true;
    for (const auto& [route, waiting] : early_) {
      if (route.line == Route::Line::Second) continue;
      for (const Early& one : waiting) late.emplace_back(route.peer, one.header);
    }
  }
  for (const auto& [peer, header] : late) refuse(peer, header);
  peers_[rank_].left = true;
  for (const Peer& peer : peers_) {
    if (peer.lane) peer.lane->send({.what = MessageHeader::What::Leave});
  }
}

void MatchTable::end() {
  for (const Peer& peer : peers_) {
    if (peer.lane) peer.lane->end();
  }
}

void MatchTable::stop() {
  stopping_ = true;
  if (engine_) engine_->abort();
  for (int peer = 0; peer < size_; ++peer) {
    if (peers_[peer].lane) peers_[peer].lane->stop();
    peers_[peer].gone = true;
  }
  const std::scoped_lock hold(mutex_);
  early_.clear();
  receives_.clear();
}

bool MatchTable::lost(const Message& parcel) const {
  const Peer& peer = peers_[parcel.route.peer];
  // What a peer has sent has met its receive, if that was there, before it is known that it has left.
  const bool gone = peer.gone, left = peer.left && parcel.route.line != Route::Line::Second;
  if (parcel.done) return false;
  if (parcel.side == Message::Side::Send) return gone || parcel.never;
  return gone || (left && parcel.posted && !parcel.met);
}

bool MatchTable::idle() const {
  if (std::ranges::any_of(peers_, [](const Peer& peer) { return peer.sends > 0 && !peer.gone; })) return false;
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(receives_, [this](const auto& waiting) {
    return waiting.first.line != Route::Line::Message || lost(*waiting.second.front());
  });
}

bool MatchTable::all_ended() const {
  return std::ranges::all_of(
      peers_, [](const Peer& peer) { return !peer.lane || peer.gone || (peer.ended && peer.lane->end_heard()); });
}

void MatchTable::send(const MessagePtr& parcel) {
  const int peer = parcel->route.peer;
  const MessageHeader header = header_of(*parcel);
  if (peer == rank_) {
    arrive(peer, header, parcel->data);
    return finish(parcel);
  }
  if (parcel->bytes > Connection::kInside) {
    count_send(*parcel, 1);
    return peers_[peer].lane->send(header, parcel);
  }
  peers_[peer].lane->send(header, parcel->data);
  finish(parcel);
}

void MatchTable::receive(const MessagePtr& parcel) {
  std::unique_lock hold(mutex_);
  const auto come = early_.find(parcel->route);
  if (come == early_.end()) {
    receives_[parcel->route].push_back(parcel);
    parcel->posted = true;
    return;
  }
  const Early early = pop_first(early_, come);
  hold.unlock();
  take(parcel, early.header, early.bytes.get());
  parcel->posted = true;
}

void MatchTable::arrive(int peer, const MessageHeader& header, const std::byte* bytes) {
  if (header.what == MessageHeader::What::Leave) return note_left(peer);
  if (header.what == MessageHeader::What::End) {
    peers_[peer].ended = true;
    return news_.tell();
  }
  if (header.what == MessageHeader::What::Seen) return news_.tell();
  const Route route{header.group, peer, header.line, header.tag};
  std::unique_lock hold(mutex_);
  const auto waiting = receives_.find(route);
  if (waiting != receives_.end()) {
    const MessagePtr parcel = pop_first(receives_, waiting);
    hold.unlock();
    return take(parcel, header, bytes);
  }
  if (leaving_ && header.line != Route::Line::Second) {
    hold.unlock();
    return refuse(peer, header);
  }
  Early early{header, nullptr};
  if (header.payload == 0 && header.bytes > 0) {
    early.bytes = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(header.bytes));
    std::memcpy(early.bytes.get(), bytes, static_cast<size_t>(header.bytes));
  }
  early_[route].push_back(std::move(early));
}

void MatchTable::take(const MessagePtr& parcel, const MessageHeader& header, const std::byte* bytes) {
  if (!agrees(*parcel, header)) return;
  parcel->met = true;
  if (header.payload != 0) return peers_[parcel->route.peer].lane->fetch(header.payload, parcel);
  if (header.bytes > 0) std::memcpy(parcel->data, bytes, static_cast<size_t>(header.bytes));
  finish(parcel);
}

void MatchTable::refuse(int peer, const MessageHeader& header) {
  if (header.payload != 0) {
    peers_[peer].lane->send({.what = MessageHeader::What::Never, .payload = header.payload});
  }
}

bool MatchTable::agrees(const Message& parcel, const MessageHeader& header) {
  const Call theirs = header.call();
  if (theirs == parcel.call && header.bytes == parcel.bytes) return true;
  const int peer = parcel.route.peer;
  if (parcel.route.line == Route::Line::Message) {
    failures_.fail({rank_, rank_,
                    cat("receives ", c10::toString(parcel.call.type), "[", parcel.call.chunk, "] where rank ", peer,
                        " sends ", c10::toString(theirs.type), "[", theirs.chunk, "]")});
  } else {
    failures_.fail({rank_, rank_, cat("called ", text(parcel.call), " where rank ", peer, " called ", text(theirs))});
  }
  news_.tell();
  return false;
}

void MatchTable::refused(const MessagePtr& parcel) {
  count_send(*parcel, -1);
  parcel->never = true;
  news_.tell();
}

void MatchTable::done(const MessagePtr& parcel) {
  if (parcel->side == Message::Side::Send) count_send(*parcel, -1);
  finish(parcel);
}

void MatchTable::count_send(const Message& parcel, int change) {
  if (parcel.route.line == Route::Line::Message) peers_[parcel.route.peer].sends += change;
}

void MatchTable::finish(const MessagePtr& parcel) {
  parcel->done = true;
  parcel->owner->parcel_done(*parcel);
}

void MatchTable::note_left(int peer) {
  if (peers_[peer].left.exchange(true)) return;
  ++num_left_;
  news_.tell();
}

void MatchTable::closed(int peer, const std::string& why) {
  if (!peers_[peer].ended) {
    const double end = now_seconds() + kNamedSeconds;
    while (!stopping_ && !failures_.failure() && now_seconds() < end) news_.wait(news_.look(), end - now_seconds());
    if (!stopping_ && !failures_.failure()) {
      // Both may be alive, and the line between them cut: neither is named alone.
      failures_.fail({-1, rank_,
                      cat("the connection between rank ", std::min(peer, rank_), " and rank ", std::max(peer, rank_),
                          " is closed, as rank ", rank_, " sees it (", printable(why, 300), ")")});
    }
  }
  peers_[peer].gone = true;
  note_left(peer);
}

}  // namespace braid::comm::gloo
