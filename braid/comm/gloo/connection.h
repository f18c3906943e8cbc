// The connection of one rank to one peer: frames both ways in order, and payloads beside them.
//
//   sender                                 receiver
//   frame: header and up to kInside bytes  -> a receive for the next frame is always there
//   frame: header with a payload's tag     -> matched with a parcel, whose memory becomes a receive with that tag
//          payload, moved by Gloo          ->
//                                          <- frame: Taken
//
// Nothing here waits on behalf of a caller: frames and payloads are waited for by two threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "braid/comm/gloo/engine.h"
#include "braid/comm/gloo/message.h"

namespace braid::comm::gloo {

// Thread-safe.
class Connection {
 public:
  static constexpr int64_t kInside = 64 << 10;  // bytes; a longer parcel has a payload

  class Receiver {
   public:
    // A frame with What::Parcel, Leave, End or Seen; `bytes` are those behind the header.
    virtual void arrive(int peer, const MessageHeader& header, const std::byte* bytes) = 0;
    virtual void refused(const MessagePtr& parcel) = 0;  // the peer has left without taking it
    virtual void done(const MessagePtr& parcel) = 0;
    // The connection is closed, by the peer or by Engine::abort(). Nothing arrives after this.
    virtual void closed(int peer, const std::string& why) = 0;

   protected:
    ~Receiver() = default;
  };

  // `engine` and `receiver` outlive this.
  Connection(Engine& engine, int peer, Receiver& receiver);
  // After Engine::abort(): waits for the threads.
  ~Connection();

  // Throws RunError when there are no threads for it; then stop() is still to be called.
  void start();

  // A frame without payload. Like all that is sent, it is dropped when the connection is closed.
  void send(const MessageHeader& header, const void* bytes = nullptr);
  void send(const MessageHeader& header, const MessagePtr& parcel);
  // The last frame of all.
  void end();
  // The peer has received the frame of end(), and so all before it.
  bool end_heard();
  // `payload` comes into the parcel's memory.
  void fetch(int32_t payload, const MessagePtr& parcel);
  // Waits until no thread touches a parcel. After Engine::abort().
  void stop();

 private:
  static constexpr int kPosted = 4;    // receives for frames
  static constexpr int kUntold = 16;   // frames received before the peer is told, if no other frame tells it
  static constexpr int kFrameTag = 0;  // payloads have the tags above
  using TransferPtr = std::unique_ptr<Engine::Transfer>;

  struct Frame {
    std::unique_ptr<std::byte[]> bytes;
    TransferPtr transfer;
  };
  struct Payload {
    int32_t tag;
    MessagePtr parcel;
    TransferPtr transfer;
  };

  void post(MessageHeader header, const void* bytes, int64_t count);
  void post_receive(Frame& frame);
  void receive_frames();
  void close();
  void handle(const Frame& frame);
  void forget_seen(int64_t seen);
  std::optional<Payload> pop_sent(int32_t tag);
  void wait_for_payloads();

  Engine& engine_;
  const int peer_;
  Receiver& receiver_;

  std::mutex sending_;
  std::deque<Frame> outgoing_;  // that the peer has not said it has seen
  int64_t forgotten_ = 0;       // frames before those
  int64_t ends_after_ = -1;     // frames, that of end() included
  int64_t received_ = 0, told_ = 0;
  int32_t next_tag_ = 0;
  std::map<int32_t, Payload> sent_;  // not yet taken

  std::mutex fetching_;
  std::condition_variable fetched_;
  Frame posted_[kPosted];
  std::deque<Payload> payloads_;  // the first is waited for
  bool closed_ = false;

  std::thread frames_, waiter_;
};

}  // namespace braid::comm::gloo
