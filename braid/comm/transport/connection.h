// The connection of one rank to one peer over a wire: frames in both directions in order, and payloads beside them.
//
//   sender                                     receiver
//   frame: header and up to kInFrame bytes     -> a receive for the next frame is always posted
//   frame: header with the tag of a payload    -> matched; the message's memory becomes a receive with that tag
//          payload, moved by the wire          ->
//                                              <- frame: Taken
//
// Nothing here blocks a caller: two threads wait for frames and payloads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "braid/comm/transport/transport.h"
#include "braid/comm/transport/wire.h"

namespace braid::comm::transport {

struct Frame {
  enum class Kind : int32_t {
    Message,
    Taken,    // the payload with this tag has arrived
    Refused,  // the payload with this tag has arrived, and no receive takes it
    Leave,    // the sender makes no more calls: it begins no message on the kinds Batch and First
    End,      // after all messages of the sender, which needs none any more
    Seen,     // carries nothing but `seen`
  };
  Kind kind = Kind::Seen;
  int32_t payload = 0;  // tag of the payload; 0: the bytes follow in the frame
  int64_t seen = 0;     // frames that the sender of this one has received from its receiver
  MessageHeader header = {};
};

// Thread-safe.
class Connection {
 public:
  static constexpr int64_t kInFrame = 64 << 10;  // bytes; a longer message has a payload

  // The connection belongs to `transport`. REQUIRES: all of them outlive this.
  Connection(Wire& wire, int peer, Transport& transport, Transport::Receiver& receiver);
  // REQUIRES: Wire::abort() was called.
  ~Connection();

  // Throws RunError if the system has no threads for it; stop() is to be called even then.
  void start();

  // Everything that is sent is dropped if the connection is closed.
  void send(const MessagePtr& message);
  void send(Frame::Kind kind, int32_t payload = 0);
  // Sends the last frame of all.
  void end();
  // Returns true if the peer has received the frame of end(), and so all frames before it.
  bool end_seen();
  // Returns true if the peer has left, or the receiver knows that the connection is closed.
  bool peer_left() const { return peer_left_ || gone_; }
  // Returns true if the receiver knows that the connection is closed, or both sides have ended and know it of each
  // other.
  bool ended() { return gone_ || (peer_ended_ && end_seen()); }
  // Receives `payload` into the memory of `receive`.
  void fetch(int32_t payload, const MessagePtr& receive);
  // Receives `payload`, which nobody wants, so that the peer's send ends, and tells the peer.
  void refuse(int32_t payload, int64_t bytes);
  // Returns when no thread touches a message any more. REQUIRES: Wire::abort() was called.
  void stop();

 private:
  static constexpr int kPosted = 4;    // receives for frames
  static constexpr int kUnseen = 16;   // frames received before the peer is told, if no other frame tells it
  static constexpr int kFrameTag = 0;  // payloads have the tags above
  using TransferPtr = std::unique_ptr<Wire::Transfer>;

  struct FrameInFlight {
    std::unique_ptr<std::byte[]> bytes;
    TransferPtr transfer;
  };
  struct Payload {
    int32_t tag;
    MessagePtr message;  // null: the payload is refused
    TransferPtr transfer;
    std::unique_ptr<std::byte[]> refused;  // its bytes
  };

  void post(Frame frame, const void* bytes, int64_t count);
  void post_payload(const MessagePtr& message);
  void post_receive(FrameInFlight& frame);
  void receive_frames();
  void close();
  void handle(const FrameInFlight& frame);
  void handle_message(const Frame& frame, const std::byte* bytes);
  void forget_seen(int64_t seen);
  std::optional<Payload> pop_sent(int32_t tag);
  void wait_for_payloads();

  Wire& wire_;
  const int peer_;
  Transport& transport_;
  Transport::Receiver& receiver_;

  std::mutex sending_;
  std::deque<FrameInFlight> outgoing_;  // frames that the peer has not reported as seen
  int64_t num_forgotten_ = 0;           // frames before those
  int64_t end_position_ = -1;           // number of frames up to that of end(); -1: not sent yet
  int64_t num_received_ = 0, num_reported_ = 0;
  int32_t next_tag_ = 0;
  std::map<int32_t, Payload> sent_;  // not yet taken

  std::mutex fetching_;
  std::condition_variable fetched_;
  FrameInFlight posted_[kPosted];
  std::deque<Payload> payloads_;  // to be received; the first is waited for
  bool closed_ = false;

  // gone: the receiver knows that the connection is closed
  std::atomic<bool> peer_left_{false}, peer_ended_{false}, gone_{false};

  std::thread frame_thread_, payload_thread_;
};

}  // namespace braid::comm::transport
