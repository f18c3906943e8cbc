// One side of a message: a send or a receive of a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/comm/communicator.h"
#include "braid/comm/gloo/match_table.h"
#include "braid/comm/gloo/operation.h"

namespace braid::comm::gloo {

class PointToPoint final : public Operation, public std::enable_shared_from_this<PointToPoint>, private Message::Owner {
 public:
  // `news` outlives this.
  PointToPoint(std::shared_ptr<const Group> group, const P2p& transfer, Notifier& news);

  // The rank has arrived at it.
  void start(MatchTable& post);

  std::string label() const override;
  Stall stall() const override;

 private:
  void parcel_done(const Message& parcel) override;

  const std::shared_ptr<const Group> group_;
  const int peer_;  // in the group
  Notifier& news_;
  at::Tensor tensor_;
  Message parcel_;
  std::atomic<const MatchTable*> post_{nullptr};  // since it has been started
};

}  // namespace braid::comm::gloo
