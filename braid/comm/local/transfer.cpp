// A message as an operation with two parties; its units are bytes.
#include "braid/comm/local/transfer.h"

#include <cstring>

#include "braid/base/text.h"

namespace braid::comm::local {

Transfer::Transfer(std::shared_ptr<const Membership> members, Route route, const at::Tensor& first)
    : Operation(members->world_state, 2),
      members_(std::move(members)),
      route_(route),
      type_(first.scalar_type()),
      count_(first.numel()) {
  if (count_ > 0) set_work(static_cast<int64_t>(first.nbytes()), 2);
}

void Transfer::attach(int party, const at::Tensor& tensor) {
  tensors_[party] = tensor;
  if (party == kSender) from_ = static_cast<const std::byte*>(tensor.const_data_ptr());
  if (party == kReceiver) to_ = static_cast<std::byte*>(tensor.mutable_data_ptr());
}

std::string Transfer::label() const {
  return cat("transfer ", route_.sender, " -> ", route_.receiver, " tag ", route_.tag, " on ", members_->name);
}

int Transfer::world_rank(int party) const {
  return members_->world_ranks[party == kSender ? route_.sender : route_.receiver];
}

void Transfer::run(int64_t begin, int64_t end) {
  if (to_ != from_) std::memcpy(to_ + begin, from_ + begin, end - begin);
}

void Transfer::finish() {
  for (at::Tensor& tensor : tensors_) tensor.reset();
}

}  // namespace braid::comm::local
