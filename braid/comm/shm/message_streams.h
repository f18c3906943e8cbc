// The messages of one rank to and from every rank of its world. From each rank to each there is one stream, a ring of
// bytes in shared memory; the receiver always takes out what is there, into the tensor of the matching receive or,
// while there is none, into memory of its own, so that no message keeps another from passing. A send is done when its
// last byte is in the ring.
//
// Moved on by whoever has the rank's lock (progress_engine.h); it never waits.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "braid/comm/shm/point_to_point.h"

namespace braid::comm::shm {

class MessageStreams {
 public:
  MessageStreams(SharedWorld& world, int rank);

  // This rank has arrived at its side of a message.
  void add(std::shared_ptr<PointToPoint> message);
  // Moves all bytes that need no waiting; true when there were any. Fails the world when two sides differ in type or
  // size.
  bool advance();
  // Marks messages whose peer has left and never issued its side.
  void mark_lost();
  // True when no message is in flight, or none that can ever complete.
  bool idle() const;

 private:
  struct Header {
    GroupId group;
    int32_t tag;
    int32_t type;
    int64_t count, bytes;
  };
  // A message of which bytes have arrived: written to its receive, or kept until one is issued.
  struct Incoming {
    Header header;
    std::shared_ptr<PointToPoint> receive;
    std::unique_ptr<std::byte[]> kept;
    int64_t received = 0;

    std::byte* target() const { return kept ? kept.get() : receive ? receive->data() : nullptr; }
    bool complete() const { return received == header.bytes; }
  };
  struct Lane {
    std::deque<std::shared_ptr<PointToPoint>> sends;
    int64_t sent = -1;                   // bytes of the first send; -1: not even its header
    std::shared_ptr<Incoming> incoming;  // its bytes come next; null: a header does
    int64_t headers = 0;                 // taken out
  };

  bool push(int peer);
  bool pull(int peer);
  void begin(int peer, const Header& header);
  void meet(Incoming& incoming, std::shared_ptr<PointToPoint> receive);
  void end(Incoming& incoming);
  void receive(std::shared_ptr<PointToPoint> message);
  bool agrees(const Header& header, const PointToPoint& receive);
  void tell(int rank) { world_.bell(rank).ring(); }

  SharedWorld& world_;
  const int rank_;
  std::vector<Lane> lanes_;                                                     // by peer
  std::map<MessageRoute, std::deque<std::shared_ptr<PointToPoint>>> receives_;  // no message has come for them yet
  std::map<MessageRoute, std::deque<std::shared_ptr<Incoming>>> unmet_;         // no receive has come for them yet
};

}  // namespace braid::comm::shm
