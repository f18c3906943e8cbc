// One side of what one rank sends another over Gloo, and the header that travels in front of it. It does not move bytes
// (connection.h does) nor match sides (match_table.h does).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "braid/comm/checked_communicator.h"

namespace braid::comm::gloo {

// Parcels match by route, in the order they were issued. `peer` is a world rank: of the other side.
struct Route {
  enum class Line : int32_t {
    Message,  // of a batch
    First,    // of collectives: what a rank gives as soon as it comes to them
    Second,   // of collectives: what it gives when it has got the first
  };
  int64_t group = 0;
  int peer = 0;
  Line line = Line::Message;
  int tag = 0;  // of collectives, which round it is
  auto operator<=>(const Route&) const = default;
};

struct Message {
  enum class Side { Send, Receive };
  class Owner {
   public:
    // On any thread, once for each parcel, and under no lock.
    virtual void parcel_done(const Message& parcel) = 0;

   protected:
    ~Owner() = default;
  };

  Side side;
  Route route;
  Call call;  // the same on both sides; of a message its type and number of elements
  std::byte* data;
  int64_t bytes;
  Owner* owner;

  std::atomic<bool> posted{false};  // a receive: what arrives finds it, or what had arrived has been found
  std::atomic<bool> met{false};     // a receive: the other side has been issued
  std::atomic<bool> never{false};   // a send: the other side has left without it
  std::atomic<bool> done{false};
};

// Keeps the parcel's owner alive, whose part it is.
using MessagePtr = std::shared_ptr<Message>;

struct MessageHeader {
  enum class What : int32_t {
    Parcel,
    Taken,  // the payload with this tag has arrived
    Never,  // nobody will take it
    Leave,  // the sender makes no more calls: it begins no parcel on the lines Message and First
    End,    // behind all parcels of the sender, which needs none any more
    Seen,   // nothing but `seen`
  };
  What what = What::Seen;
  Route::Line line = Route::Line::Message;
  int64_t group = 0, bytes = 0, chunk = 0;
  int64_t seen = 0;  // frames that the sender of this one has received from its receiver
  int32_t tag = 0;
  int32_t payload = 0;  // tag of the bytes; 0: they are behind this header
  int32_t kind = 0, op = 0, root = 0, type = 0;

  Call call() const {
    return {static_cast<CallKind>(kind), static_cast<ReduceOp>(op), root, static_cast<at::ScalarType>(type), chunk};
  }
};

}  // namespace braid::comm::gloo
