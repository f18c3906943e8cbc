// Messages between roles outside the mesh, such as servers and workers. Unlike in a Communicator, no call is
// collective, and the failure of one endpoint does not fail the others. If an endpoint closes or its thread ends, its
// peers receive that as an event, like a message.
//
// A message is moved, not copied. After send() the sender must not write its tensors. The receiver shares their memory
// and only reads it. Tensors must not be views, because a view keeps its whole base tensor alive. Messages of one
// sender with one tag arrive in the order they were sent. send() never blocks.
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
    Received,  // `message` came from `peer`
    Closed,    // `peer` has closed and sends no more; if `peer` is endpoint(), this endpoint itself is closed
    TimedOut,  // no message with the tag came before the deadline
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

  // Destroying the endpoint closes it.
  virtual ~Channel() = default;

  virtual int endpoint() const = 0;  // number of this endpoint, from 0
  virtual int num_endpoints() const = 0;

  // Sends a message. Accepted: the peer receives the message unless it closes first. `peer` may be endpoint() itself.
  virtual Delivery send(int peer, int tag, ChannelMessage message) = 0;
  // Returns the next message with `tag`, from any peer; blocks until there is one. A peer that has closed is reported
  // as Closed once per tag, after all messages it has sent with that tag. Only one thread may call this at a time.
  virtual ChannelEvent recv_any(int tag, Time deadline) = 0;
  // Closes the endpoint. Any thread may call this, also while recv_any() blocks: then that call, and every later one,
  // returns Closed. Messages not yet received are dropped.
  virtual void close() = 0;
};

}  // namespace braid
