// A message's parcel and its wording.
#include "braid/comm/gloo/gloo_message.h"

#include "braid/base/text.h"

namespace braid {
namespace {

std::byte* memory_of(const P2p& transfer) {
  const at::Tensor& tensor = transfer.tensor;
  const bool sends = transfer.kind == P2p::Kind::Send;
  return static_cast<std::byte*>(sends ? const_cast<void*>(tensor.const_data_ptr()) : tensor.mutable_data_ptr());
}

}  // namespace

GlooMessage::GlooMessage(std::shared_ptr<const GlooGroup> group, const P2p& transfer, GlooNews& news)
    : group_(std::move(group)),
      peer_(transfer.peer),
      news_(news),
      tensor_(transfer.tensor),
      parcel_{.side = transfer.kind == P2p::Kind::Send ? GlooParcel::Side::Send : GlooParcel::Side::Receive,
              .route = {group_->id, group_->world_ranks[peer_], GlooRoute::Line::Message, transfer.tag},
              .call = {.type = tensor_.scalar_type(), .chunk = tensor_.numel()},
              .data = memory_of(transfer),
              .bytes = static_cast<int64_t>(tensor_.nbytes()),
              .owner = this} {}

void GlooMessage::start(GlooPost& post) {
  post_ = &post;
  post.add(GlooParcelPtr(shared_from_this(), &parcel_));
}

void GlooMessage::parcel_done(const GlooParcel&) {
  tensor_.reset();
  finish();
  news_.tell();
}

std::string GlooMessage::label() const {
  const bool sends = parcel_.side == GlooParcel::Side::Send;
  const int sender = sends ? group_->rank : peer_, receiver = sends ? peer_ : group_->rank;
  return cat("transfer ", sender, " -> ", receiver, " tag ", parcel_.route.tag, " on ", group_->name);
}

GlooStall GlooMessage::stall() const {
  const GlooPost* post = post_;
  GlooStall stall{label(), {}, post && post->lost(parcel_) ? parcel_.route.peer : -1};
  if (!post) stall.missing.push_back(group_->world_rank());
  if (!parcel_.met && !done()) stall.missing.push_back(parcel_.route.peer);
  return stall;
}

}  // namespace braid
