// One side of a message between two ranks, and the header that travels in front of its bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "braid/comm/checked_communicator.h"

namespace braid::comm::transport {

// Messages match by route, in the order they were issued. `peer` is the world rank of the other side.
struct Route {
  enum class Kind : int32_t {
    Batch,    // messages of Communicator::batch()
    First,    // collectives: bytes that a rank sends as soon as it issues them
    Second,   // collectives: bytes that a rank sends once it has received the first
    Channel,  // messages of a channel (transport_channel.h)
  };
  int64_t group = 0;
  int peer = 0;
  Kind kind = Kind::Batch;
  int tag = 0;  // of a collective, the number of its round
  auto operator<=>(const Route&) const = default;
};

struct Message {
  enum class Side { Send, Receive };
  class Owner {
   public:
    // Called once for each message, on any thread, under no lock of the match table.
    virtual void message_done(const Message& message) = 0;

   protected:
    ~Owner() = default;
  };

  Side side;
  Route route;
  Call call;               // equal on both sides; of a batch, type and number of elements are
  std::string_view group;  // name of the group, which outlives the message
  std::byte* data;
  int64_t bytes;
  Owner* owner;

  // A receive waits in the match table, or has found its message there. The transport has taken a send.
  std::atomic<bool> posted{false};
  std::atomic<bool> matched{false};  // receive: the other side has been issued
  std::atomic<bool> refused{false};  // send: the peer has left without receiving it
  std::atomic<bool> done{false};
};

// Also keeps the owner of the message alive.
using MessagePtr = std::shared_ptr<Message>;

// Lies in shared memory or travels over a network as it is: all ranks run the same program.
struct MessageHeader {
  Route::Kind route_kind = Route::Kind::Batch;
  int32_t tag = 0;
  int64_t group = 0, bytes = 0, chunk = 0;
  int32_t kind = 0, op = 0, root = 0, type = 0;
  int64_t number = 0;
  OpName name = {};

  static MessageHeader of(const Message& message) {
    const Call& call = message.call;
    return {message.route.kind,
            message.route.tag,
            message.route.group,
            message.bytes,
            call.chunk,
            static_cast<int32_t>(call.kind),
            static_cast<int32_t>(call.op),
            call.root,
            static_cast<int32_t>(call.type),
            call.number,
            call.name};
  }
  Call call() const {
    const int of_transfer = route_kind == Route::Kind::Batch ? tag : 0;
    return {static_cast<CallKind>(kind),
            static_cast<ReduceOp>(op),
            root,
            static_cast<at::ScalarType>(type),
            chunk,
            of_transfer,
            number,
            name};
  }
  Route route(int peer) const { return {group, peer, route_kind, tag}; }
};

// A message that has begun to arrive. Its bytes go to memory(): that of the receive if one was posted, else a buffer.
struct Arrival {
  int peer = 0;
  MessageHeader header;
  int32_t payload = 0;  // not 0: the bytes come when Transport::fetch() asks for them
  MessagePtr receive;   // null until one is posted
  std::unique_ptr<std::byte[]> buffer;
  bool complete = false;  // all bytes are in memory()

  std::byte* memory() const { return buffer ? buffer.get() : receive ? receive->data : nullptr; }
};

}  // namespace braid::comm::transport
