// A message's parcel and its wording.
#include "braid/comm/gloo/point_to_point.h"

#include "braid/base/text.h"

namespace braid::comm::gloo {
namespace {

std::byte* memory_of(const P2p& transfer) {
  const at::Tensor& tensor = transfer.tensor;
  const bool sends = transfer.kind == P2p::Kind::Send;
  return static_cast<std::byte*>(sends ? const_cast<void*>(tensor.const_data_ptr()) : tensor.mutable_data_ptr());
}

}  // namespace

PointToPoint::PointToPoint(std::shared_ptr<const Group> group, const P2p& transfer, Notifier& news)
    : group_(std::move(group)),
      peer_(transfer.peer),
      news_(news),
      tensor_(transfer.tensor),
      parcel_{.side = transfer.kind == P2p::Kind::Send ? Message::Side::Send : Message::Side::Receive,
              .route = {group_->id, group_->world_ranks[peer_], Route::Line::Message, transfer.tag},
              .call = {.type = tensor_.scalar_type(), .chunk = tensor_.numel()},
              .data = memory_of(transfer),
              .bytes = static_cast<int64_t>(tensor_.nbytes()),
              .owner = this} {}

void PointToPoint::start(MatchTable& post) {
  post_ = &post;
  post.add(MessagePtr(shared_from_this(), &parcel_));
}

void PointToPoint::parcel_done(const Message&) {
  tensor_.reset();
  finish();
  news_.tell();
}

std::string PointToPoint::label() const {
  const bool sends = parcel_.side == Message::Side::Send;
  const int sender = sends ? group_->rank : peer_, receiver = sends ? peer_ : group_->rank;
  return cat("transfer ", sender, " -> ", receiver, " tag ", parcel_.route.tag, " on ", group_->name);
}

Stall PointToPoint::stall() const {
  const MatchTable* post = post_;
  Stall stall{label(), {}, post && post->lost(parcel_) ? parcel_.route.peer : -1};
  if (!post) stall.missing.push_back(group_->world_rank());
  if (!parcel_.met && !done()) stall.missing.push_back(parcel_.route.peer);
  return stall;
}

}  // namespace braid::comm::gloo
