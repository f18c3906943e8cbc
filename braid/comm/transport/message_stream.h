// Messages to and from one peer over a pair of byte streams. The receiver always takes out what has arrived, into the
// memory of the receive or into a buffer, so no message keeps another from passing. A send is done when its last byte
// is in the stream, whether or not the receiver has asked for it.
#pragma once

#include <deque>
#include <memory>

#include "braid/comm/transport/transport.h"

namespace braid::comm::transport {

// Bytes leave a stream in the order they came. Neither function blocks: each moves as many bytes as it can, at least
// one if possible, and returns their number.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual int64_t write(const void* from, int64_t count) = 0;
  virtual int64_t read(void* to, int64_t count) = 0;
};

// REQUIRES: the owner calls from one thread at a time.
class MessageStream {
 public:
  enum class Notice : int32_t {
    None,
    Leave,  // the sender makes no more calls: it begins no message on the kinds Batch and First
    End,    // the sender sends nothing more and receives nothing more
  };

  MessageStream(int peer, std::unique_ptr<ByteStream> stream) : peer_(peer), stream_(std::move(stream)) {}

  void send(MessagePtr message);
  void send(Notice notice);
  // Moves bytes of the next message. Returns true if any moved.
  bool push(Transport::Receiver& receiver);
  bool pull(Transport::Receiver& receiver);

  bool has_unsent() const { return !sends_.empty(); }
  int64_t num_arrived() const { return num_arrived_; }  // messages that have begun to arrive
  bool peer_has_ended() const { return peer_has_ended_; }

 private:
  struct Header {
    Notice notice = Notice::None;
    MessageHeader message = {};
  };
  static constexpr int64_t kHeaderBytes = sizeof(Header);
  struct Send {
    Header header;
    MessagePtr message;  // null for a notice
  };

  bool begin_arrival(Transport::Receiver& receiver);

  int peer_;
  std::unique_ptr<ByteStream> stream_;
  std::deque<Send> sends_;
  int64_t sent_ = 0;  // bytes of the first send, with its header
  Header incoming_;
  int64_t received_ = 0;               // bytes of the incoming message, with its header
  std::shared_ptr<Arrival> arriving_;  // set once the header is complete
  int64_t num_arrived_ = 0;
  bool peer_has_ended_ = false;
};

}  // namespace braid::comm::transport
