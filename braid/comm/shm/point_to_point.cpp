// Wording and book-keeping of a message's side.
#include "braid/comm/shm/point_to_point.h"

#include "braid/base/text.h"

namespace braid::comm::shm {

PointToPoint::PointToPoint(std::shared_ptr<const Group> group, int rank, const P2p& transfer)
    : group_(std::move(group)),
      rank_(rank),
      peer_(transfer.peer),
      sends_(transfer.kind == P2p::Kind::Send),
      route_{group_->id, group_->world_ranks[transfer.peer], transfer.tag},
      type_(transfer.tensor.scalar_type()),
      count_(transfer.tensor.numel()),
      bytes_(static_cast<int64_t>(transfer.tensor.nbytes())),
      tensor_(transfer.tensor),
      data_(
          static_cast<std::byte*>(sends_ ? const_cast<void*>(tensor_.const_data_ptr()) : tensor_.mutable_data_ptr())) {}

void PointToPoint::complete() {
  tensor_.reset();
  finish();
}

std::string PointToPoint::label() const {
  const int sender = sends_ ? rank_ : peer_, receiver = sends_ ? peer_ : rank_;
  return cat("transfer ", sender, " -> ", receiver, " tag ", route_.tag, " on ", group_->name);
}

std::vector<int> PointToPoint::missing() const {
  std::vector<int> ranks;
  if (!arrived_) ranks.push_back(group_->world_ranks[rank_]);
  if (!met_ && !done()) ranks.push_back(route_.peer);
  return ranks;
}

}  // namespace braid::comm::shm
