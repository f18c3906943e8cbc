// One side of a message between processes: a send or a receive. It does not move bytes (message_streams.h does).
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/shm/operation.h"

namespace braid::comm::shm {

// Messages match by group, sender and tag, in order. Peers are world ranks.
struct MessageRoute {
  GroupId group;
  int peer, tag;
  auto operator<=>(const MessageRoute&) const = default;
};

class PointToPoint final : public Operation {
 public:
  // `rank` and transfer.peer are ranks of `group`.
  PointToPoint(std::shared_ptr<const Group> group, int rank, const P2p& transfer);

  const MessageRoute& route() const { return route_; }
  bool sends() const { return sends_; }
  at::ScalarType type() const { return type_; }
  int64_t count() const { return count_; }
  int64_t bytes() const { return bytes_; }
  std::byte* data() const { return data_; }

  // Set by MessageStreams.
  void set_arrived() { arrived_ = true; }  // this side has been issued
  void set_met() { met_ = true; }          // a receive: the first bytes of its message are here
  void set_never() { never_ = true; }      // the peer has left without issuing its side
  void complete();

  std::string label() const override;
  std::vector<int> missing() const override;
  int lost() const override { return !done() && never_ ? route_.peer : -1; }

 private:
  const std::shared_ptr<const Group> group_;
  const int rank_, peer_;
  const bool sends_;
  const MessageRoute route_;
  const at::ScalarType type_;
  const int64_t count_, bytes_;
  at::Tensor tensor_;
  std::byte* data_;
  std::atomic<bool> arrived_{false}, met_{false}, never_{false};
};

}  // namespace braid::comm::shm
