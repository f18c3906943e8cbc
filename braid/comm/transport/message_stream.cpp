// Headers and payloads, in pieces of any size.
#include "braid/comm/transport/message_stream.h"

#include <algorithm>

namespace braid::comm::transport {

void MessageStream::send(MessagePtr message) {
  const MessageHeader header = MessageHeader::of(*message);
  sends_.push_back({{Notice::None, header}, std::move(message)});
}

void MessageStream::send(Notice notice) { sends_.push_back({{notice}, nullptr}); }

bool MessageStream::push(Transport::Receiver& receiver) {
  if (sends_.empty()) return false;
  const Send& send = sends_.front();
  const int64_t before = sent_, bytes = send.message ? send.message->bytes : 0;
  if (sent_ < kHeaderBytes) {
    sent_ += stream_->write(reinterpret_cast<const std::byte*>(&send.header) + sent_, kHeaderBytes - sent_);
  }
  if (sent_ >= kHeaderBytes && sent_ < kHeaderBytes + bytes) {
    const int64_t done = sent_ - kHeaderBytes;
    sent_ += stream_->write(send.message->data + done, bytes - done);
  }
  const bool moved = sent_ > before;
  if (sent_ == kHeaderBytes + bytes) {
    const MessagePtr message = send.message;
    sends_.pop_front();
    sent_ = 0;
    if (message) receiver.sent(message);
  }
  return moved;
}

bool MessageStream::pull(Transport::Receiver& receiver) {
  const int64_t before = received_;
  if (received_ < kHeaderBytes) {
    received_ += stream_->read(reinterpret_cast<std::byte*>(&incoming_) + received_, kHeaderBytes - received_);
    if (received_ < kHeaderBytes) return received_ > before;
    if (begin_arrival(receiver)) return true;
  }
  if (!arriving_) return false;  // the world has failed
  const int64_t done = received_ - kHeaderBytes, left = incoming_.message.bytes - done;
  if (left > 0) received_ += stream_->read(arriving_->memory() + done, left);
  const bool moved = received_ > before;
  if (received_ == kHeaderBytes + incoming_.message.bytes) {
    receiver.arrived(*arriving_);
    arriving_ = nullptr;
    received_ = 0;
  }
  return moved;
}

// Returns true if the header was all.
bool MessageStream::begin_arrival(Transport::Receiver& receiver) {
  if (incoming_.notice == Notice::None) {
    arriving_ = receiver.arrive(peer_, incoming_.message, 0);
    ++num_arrived_;
    return false;
  }
  received_ = 0;
  if (incoming_.notice == Notice::Leave) {
    receiver.left(peer_);
  } else {
    peer_has_ended_ = true;
    receiver.ended(peer_);
  }
  return true;
}

}  // namespace braid::comm::transport
