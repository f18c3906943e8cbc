// Connections between all ranks of a group over which bytes move: sends and receives that match by peer and tag, in
// order. Gloo and MPI implement it; WireTransport makes a Transport of it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace braid::comm::transport {

// Thrown if a connection is closed, the wire was aborted, or peers were not found.
class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thread-safe.
class Wire {
 public:
  static constexpr int kMaxTag = 1 << 27;

  // A send or receive in flight. Destroyed when it has ended, when the peer will never do its part, or after abort().
  class Transfer {
   public:
    virtual ~Transfer() = default;
    virtual void wait() = 0;  // throws WireError
    // Ends a wait, now or later. A receive that is in the middle of its bytes does not notice Wire::abort().
    virtual void abort() = 0;
  };

  virtual ~Wire() = default;

  // Neither blocks. The peer's receive with the same tag gets the bytes, in the order of sends; it has room for as many
  // or more. A send of any size ends when that receive is posted. 0 <= tag < max_tag(); `peer` is another rank.
  virtual std::unique_ptr<Transfer> send(const void* bytes, int64_t count, int peer, int tag) = 0;
  virtual std::unique_ptr<Transfer> receive(void* bytes, int64_t count, int peer, int tag) = 0;

  virtual int max_tag() const { return kMaxTag; }

  // Called around each sleep of a thread of the rank that waits for something to arrive.
  virtual void begin_wait() {}
  virtual void end_wait() {}

  // Closes all connections: no memory is read or written from here on, and all waits throw WireError, except those of a
  // receive that is in the middle of its last bytes: this ends with Transfer::abort().
  virtual void abort() = 0;
};

}  // namespace braid::comm::transport
