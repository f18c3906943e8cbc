// Wording and book-keeping of a message's side.
#include "braid/comm/shm/shm_message.h"

#include "braid/base/text.h"

namespace braid {

ShmMessage::ShmMessage(std::shared_ptr<const ShmGroup> group, int rank, const P2p& transfer)
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

void ShmMessage::complete() {
  tensor_.reset();
  finish();
}

std::string ShmMessage::label() const {
  const int sender = sends_ ? rank_ : peer_, receiver = sends_ ? peer_ : rank_;
  return cat("transfer ", sender, " -> ", receiver, " tag ", route_.tag, " on ", group_->name);
}

std::vector<int> ShmMessage::missing() const {
  std::vector<int> ranks;
  if (!arrived_) ranks.push_back(group_->world_ranks[rank_]);
  if (!met_ && !done()) ranks.push_back(route_.peer);
  return ranks;
}

}  // namespace braid
