// Matching, and what becomes of parcels when a peer leaves or its connection closes.
#include "braid/comm/gloo/gloo_post.h"

#include <algorithm>
#include <cstring>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

template <class Queues>
auto pop_first(Queues& queues, typename Queues::iterator at) {
  auto first = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) queues.erase(at);
  return first;
}

GlooHeader header_of(const GlooParcel& parcel) {
  const Call& call = parcel.call;
  return {.what = GlooHeader::What::Parcel,
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

GlooPost::GlooPost(GlooEngine* engine, int rank, int size, WorldFate& fate, GlooNews& news)
    : engine_(engine), rank_(rank), size_(size), fate_(fate), news_(news), peers_(size) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank)
      peers_[peer].lane = std::make_unique<GlooLane>(*engine, peer, static_cast<GlooLane::Receiver&>(*this));
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

GlooPost::~GlooPost() { stop(); }

void GlooPost::add(const GlooParcelPtr& parcel) {
  return parcel->side == GlooParcel::Side::Send ? send(parcel) : receive(parcel);
}

void GlooPost::leave() {
  std::vector<std::pair<int, GlooHeader>> late;
  {
    const std::scoped_lock hold(mutex_);
    leaving_ = true;
    for (const auto& [route, waiting] : early_) {
      if (route.line == GlooRoute::Line::Second) continue;
      for (const Early& one : waiting) late.emplace_back(route.peer, one.header);
    }
  }
  for (const auto& [peer, header] : late) refuse(peer, header);
  peers_[rank_].left = true;
  for (const Peer& peer : peers_) {
    if (peer.lane) peer.lane->send({.what = GlooHeader::What::Leave});
  }
}

void GlooPost::end() {
  for (const Peer& peer : peers_) {
    if (peer.lane) peer.lane->end();
  }
}

void GlooPost::stop() {
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

bool GlooPost::lost(const GlooParcel& parcel) const {
  const Peer& peer = peers_[parcel.route.peer];
  // What a peer has sent has met its receive, if that was there, before it is known that it has left.
  const bool gone = peer.gone, left = peer.left && parcel.route.line != GlooRoute::Line::Second;
  if (parcel.done) return false;
  if (parcel.side == GlooParcel::Side::Send) return gone || parcel.never;
  return gone || (left && parcel.posted && !parcel.met);
}

bool GlooPost::idle() const {
  if (std::ranges::any_of(peers_, [](const Peer& peer) { return peer.sends > 0 && !peer.gone; })) return false;
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(receives_, [this](const auto& waiting) {
    return waiting.first.line != GlooRoute::Line::Message || lost(*waiting.second.front());
  });
}

bool GlooPost::all_ended() const {
  return std::ranges::all_of(
      peers_, [](const Peer& peer) { return !peer.lane || peer.gone || (peer.ended && peer.lane->end_heard()); });
}

void GlooPost::send(const GlooParcelPtr& parcel) {
  const int peer = parcel->route.peer;
  const GlooHeader header = header_of(*parcel);
  if (peer == rank_) {
    arrive(peer, header, parcel->data);
    return finish(parcel);
  }
  if (parcel->bytes > GlooLane::kInside) {
    count_send(*parcel, 1);
    return peers_[peer].lane->send(header, parcel);
  }
  peers_[peer].lane->send(header, parcel->data);
  finish(parcel);
}

void GlooPost::receive(const GlooParcelPtr& parcel) {
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

void GlooPost::arrive(int peer, const GlooHeader& header, const std::byte* bytes) {
  if (header.what == GlooHeader::What::Leave) return note_left(peer);
  if (header.what == GlooHeader::What::End) {
    peers_[peer].ended = true;
    return news_.tell();
  }
  if (header.what == GlooHeader::What::Seen) return news_.tell();
  const GlooRoute route{header.group, peer, header.line, header.tag};
  std::unique_lock hold(mutex_);
  const auto waiting = receives_.find(route);
  if (waiting != receives_.end()) {
    const GlooParcelPtr parcel = pop_first(receives_, waiting);
    hold.unlock();
    return take(parcel, header, bytes);
  }
  if (leaving_ && header.line != GlooRoute::Line::Second) {
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

void GlooPost::take(const GlooParcelPtr& parcel, const GlooHeader& header, const std::byte* bytes) {
  if (!agrees(*parcel, header)) return;
  parcel->met = true;
  if (header.payload != 0) return peers_[parcel->route.peer].lane->fetch(header.payload, parcel);
  if (header.bytes > 0) std::memcpy(parcel->data, bytes, static_cast<size_t>(header.bytes));
  finish(parcel);
}

void GlooPost::refuse(int peer, const GlooHeader& header) {
  if (header.payload != 0) {
    peers_[peer].lane->send({.what = GlooHeader::What::Never, .payload = header.payload});
  }
}

bool GlooPost::agrees(const GlooParcel& parcel, const GlooHeader& header) {
  const Call theirs = header.call();
  if (theirs == parcel.call && header.bytes == parcel.bytes) return true;
  const int peer = parcel.route.peer;
  if (parcel.route.line == GlooRoute::Line::Message) {
    fate_.fail({rank_, rank_,
                cat("receives ", c10::toString(parcel.call.type), "[", parcel.call.chunk, "] where rank ", peer,
                    " sends ", c10::toString(theirs.type), "[", theirs.chunk, "]")});
  } else {
    fate_.fail({rank_, rank_, cat("called ", text(parcel.call), " where rank ", peer, " called ", text(theirs))});
  }
  news_.tell();
  return false;
}

void GlooPost::refused(const GlooParcelPtr& parcel) {
  count_send(*parcel, -1);
  parcel->never = true;
  news_.tell();
}

void GlooPost::done(const GlooParcelPtr& parcel) {
  if (parcel->side == GlooParcel::Side::Send) count_send(*parcel, -1);
  finish(parcel);
}

void GlooPost::count_send(const GlooParcel& parcel, int change) {
  if (parcel.route.line == GlooRoute::Line::Message) peers_[parcel.route.peer].sends += change;
}

void GlooPost::finish(const GlooParcelPtr& parcel) {
  parcel->done = true;
  parcel->owner->parcel_done(*parcel);
}

void GlooPost::note_left(int peer) {
  if (peers_[peer].left.exchange(true)) return;
  ++num_left_;
  news_.tell();
}

void GlooPost::closed(int peer, const std::string& why) {
  if (!peers_[peer].ended) {
    const double end = now_seconds() + kNamedSeconds;
    while (!stopping_ && !fate_.failure() && now_seconds() < end) news_.wait(news_.look(), end - now_seconds());
    if (!stopping_ && !fate_.failure()) {
      // Both may be alive, and the line between them cut: neither is named alone.
      fate_.fail({-1, rank_,
                  cat("the connection between rank ", std::min(peer, rank_), " and rank ", std::max(peer, rank_),
                      " is closed, as rank ", rank_, " sees it (", printable(why, 300), ")")});
    }
  }
  peers_[peer].gone = true;
  note_left(peer);
}

}  // namespace braid
