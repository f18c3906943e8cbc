// Messages between roles outside the mesh: servers and workers. Unlike a Communicator nothing is collective and no loss
// poisons others: an endpoint that closes, or whose thread ends, is news that its peers receive, a value like any
// message.
//
// A message moves: after send() the sender writes none of its tensors, and the receiver, who shares their memory, only
// reads them. None of them is a view, which would keep alive all that it is a view of. Messages of one sender with one
// tag arrive in the order they were sent. send() never waits.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace braid {

struct ChannelMessage {
  std::vector<int64_t> header;
  std::vector<at::Tensor> tensors;

  // Returns the bytes of header and tensors.
  int64_t num_bytes() const {
    int64_t bytes = static_cast<int64_t>(header.size() * sizeof(int64_t));
    for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
    return bytes;
  }
};

// The result of recv_any().
struct ChannelEvent {
  enum class Kind {
    Received,  // `message` of `peer`
    Closed,    // `peer` has closed and sends no more; where `peer` is endpoint(), this endpoint itself is closed
    TimedOut,  // no message with the tag came until the deadline
  };
  Kind kind = Kind::TimedOut;
  int peer = -1;
  ChannelMessage message;
};

enum class Delivery { Accepted, PeerClosed };

class Channel {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time kNoDeadline = Time::max();

  // Closes the endpoint.
  virtual ~Channel() = default;

  virtual int endpoint() const = 0;  // this one's number, from 0
  virtual int num_endpoints() const = 0;

  // Accepted: the peer gets the message unless it closes before it receives it. `peer` may be endpoint() itself.
  virtual Delivery send(int peer, int tag, ChannelMessage message) = 0;
  // The next message with `tag`, from any peer. A peer that has closed is reported as Closed once per tag, after all
  // messages it has sent with that tag. With neither at hand it waits. One thread at a time.
  virtual ChannelEvent recv_any(int tag, Time deadline) = 0;
  // May be called from any thread, also while recv_any() waits: it then returns, and so does every later one. Messages
  // that nobody has received are dropped.
  virtual void close() = 0;
};

}  // namespace braid
