// Frames, payloads and the two threads. Everything is posted to the wire at once and under `sending_`, so frames keep
// their order. What was sent is forgotten when the peer reports that it has arrived, so no thread waits for it.
#include "braid/comm/transport/connection.h"

#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/started_thread.h"

namespace braid::comm::transport {

Connection::Connection(Wire& wire, int peer, Transport& transport, Transport::Receiver& receiver)
    : wire_(wire), peer_(peer), transport_(transport), receiver_(receiver) {}

Connection::~Connection() { stop(); }

void Connection::start() {
  frame_thread_ = started_thread("a connection", [this] { receive_frames(); });
  payload_thread_ = started_thread("a connection", [this] { wait_for_payloads(); });
}

void Connection::stop() {
  close();
  if (frame_thread_.joinable()) frame_thread_.join();
  if (payload_thread_.joinable()) payload_thread_.join();
}

void Connection::close() {
  const std::scoped_lock hold(fetching_);
  closed_ = true;
  for (const FrameInFlight& frame : posted_) {
    if (frame.transfer) frame.transfer->abort();
  }
  for (const Payload& payload : payloads_) payload.transfer->abort();
  fetched_.notify_one();
}

void Connection::send(const MessagePtr& message) {
  const bool in_frame = message->bytes <= kInFrame;
  {
    const std::scoped_lock hold(sending_);
    try {
      if (in_frame) {
        post({.kind = Frame::Kind::Message, .header = MessageHeader::of(*message)}, message->data, message->bytes);
      } else {
        post_payload(message);
      }
    } catch (const WireError&) {  // receive_frames() reports it
    }
  }
  if (in_frame) receiver_.sent(message);
}

void Connection::send(Frame::Kind kind, int32_t payload) {
  const std::scoped_lock hold(sending_);
  try {
    post({.kind = kind, .payload = payload}, nullptr, 0);
  } catch (const WireError&) {
  }
}

// The peer does not answer a frame that only says Seen, so the position of the last frame is kept.
void Connection::end() {
  const std::scoped_lock hold(sending_);
  try {
    post({.kind = Frame::Kind::End}, nullptr, 0);
  } catch (const WireError&) {
  }
  end_position_ = num_forgotten_ + static_cast<int64_t>(outgoing_.size());
}

bool Connection::end_seen() {
  const std::scoped_lock hold(sending_);
  return end_position_ >= 0 && num_forgotten_ >= end_position_;
}

void Connection::fetch(int32_t payload, const MessagePtr& receive) {
  const std::scoped_lock hold(fetching_);
  if (closed_) return;
  try {
    payloads_.push_back({payload, receive, wire_.receive(receive->data, receive->bytes, peer_, payload), nullptr});
    fetched_.notify_one();
  } catch (const WireError&) {
  }
}

void Connection::refuse(int32_t payload, int64_t bytes) {
  const std::scoped_lock hold(fetching_);
  if (closed_) return;
  try {
    auto memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
    auto transfer = wire_.receive(memory.get(), bytes, peer_, payload);
    payloads_.push_back({payload, nullptr, std::move(transfer), std::move(memory)});
    fetched_.notify_one();
  } catch (const WireError&) {
  }
}

// REQUIRES: sending_ is held.
void Connection::post(Frame frame, const void* bytes, int64_t count) {
  frame.seen = num_reported_ = num_received_;
  FrameInFlight sent{std::make_unique_for_overwrite<std::byte[]>(sizeof frame + count), nullptr};
  std::memcpy(sent.bytes.get(), &frame, sizeof frame);
  if (count > 0) std::memcpy(sent.bytes.get() + sizeof frame, bytes, count);
  sent.transfer = wire_.send(sent.bytes.get(), static_cast<int64_t>(sizeof frame) + count, peer_, kFrameTag);
  outgoing_.push_back(std::move(sent));
}

// REQUIRES: sending_ is held.
void Connection::post_payload(const MessagePtr& message) {
  do {
    next_tag_ = next_tag_ % (wire_.max_tag() - 1) + 1;
  } while (sent_.contains(next_tag_));
  const int32_t tag = next_tag_;
  Payload& sent = sent_[tag] = {tag, message, nullptr, nullptr};
  sent.transfer = wire_.send(message->data, message->bytes, peer_, tag);
  post({.kind = Frame::Kind::Message, .payload = tag, .header = MessageHeader::of(*message)}, nullptr, 0);
}

void Connection::post_receive(FrameInFlight& frame) {
  constexpr int64_t kFrameBytes = sizeof(Frame) + kInFrame;
  const std::scoped_lock hold(fetching_);
  if (closed_) throw WireError("aborted");
  if (!frame.bytes) frame.bytes = std::make_unique_for_overwrite<std::byte[]>(kFrameBytes);
  frame.transfer = wire_.receive(frame.bytes.get(), kFrameBytes, peer_, kFrameTag);
}

void Connection::receive_frames() {
  std::string why;
  try {
    for (FrameInFlight& frame : posted_) post_receive(frame);
    for (int turn = 0;; turn = (turn + 1) % kPosted) {
      posted_[turn].transfer->wait();
      handle(posted_[turn]);
      post_receive(posted_[turn]);
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  close();
  receiver_.closed(peer_, why);
  gone_ = true;
  transport_.notify();
}

void Connection::handle(const FrameInFlight& received) {
  Frame frame;
  std::memcpy(&frame, received.bytes.get(), sizeof frame);
  const bool ends = frame.kind == Frame::Kind::End;
  // Before any thread reports the last frame as seen: the peer may close the connection as soon as it is told.
  if (ends) receiver_.ended(peer_);
  forget_seen(frame.seen);
  switch (frame.kind) {
    case Frame::Kind::Message:
      handle_message(frame, received.bytes.get() + sizeof frame);
      break;
    case Frame::Kind::Taken:
      if (auto sent = pop_sent(frame.payload)) {
        sent->transfer->wait();  // it has ended, or does at this moment
        receiver_.sent(sent->message);
      }
      break;
    case Frame::Kind::Refused:
      if (const auto sent = pop_sent(frame.payload)) {
        sent->transfer->wait();  // as above
        receiver_.refused(sent->message);
      }
      break;
    case Frame::Kind::Leave:
      peer_left_ = true;
      receiver_.left(peer_);
      break;
    case Frame::Kind::End:
    case Frame::Kind::Seen:
      break;
  }
  {
    const std::scoped_lock hold(sending_);
    if (ends || num_received_ - num_reported_ >= kUnseen) post({.kind = Frame::Kind::Seen}, nullptr, 0);
  }
  if (ends) peer_ended_ = true;
  if (ends || frame.kind == Frame::Kind::Seen) transport_.notify();  // ended() may be true now
}

void Connection::handle_message(const Frame& frame, const std::byte* bytes) {
  const auto arrival = receiver_.arrive(peer_, frame.header, frame.payload);
  if (!arrival || frame.payload != 0) return;
  if (frame.header.bytes > 0) std::memcpy(arrival->memory(), bytes, static_cast<size_t>(frame.header.bytes));
  receiver_.arrived(*arrival);
}

void Connection::forget_seen(int64_t seen) {
  const std::scoped_lock hold(sending_);
  ++num_received_;
  for (; num_forgotten_ < seen && !outgoing_.empty(); ++num_forgotten_) {
    outgoing_.front().transfer->wait();  // as above
    outgoing_.pop_front();
  }
}

std::optional<Connection::Payload> Connection::pop_sent(int32_t tag) {
  const std::scoped_lock hold(sending_);
  const auto found = sent_.find(tag);
  if (found == sent_.end()) return std::nullopt;
  std::optional<Payload> payload = std::move(found->second);
  sent_.erase(found);
  return payload;
}

// A payload that is waited for is on its way, so they arrive in this order or nearly so.
void Connection::wait_for_payloads() {
  for (;;) {
    std::unique_lock hold(fetching_);
    fetched_.wait(hold, [this] { return closed_ || !payloads_.empty(); });
    if (closed_) return;
    const Payload& first = payloads_.front();
    hold.unlock();
    try {
      first.transfer->wait();
    } catch (const WireError&) {
      return;
    }
    hold.lock();
    const Payload payload = std::move(payloads_.front());
    payloads_.pop_front();
    hold.unlock();
    send(payload.message ? Frame::Kind::Taken : Frame::Kind::Refused, payload.tag);
    if (payload.message) receiver_.fetched(payload.message);
  }
}

}  // namespace braid::comm::transport
