// A message as an operation with two parties; its units are bytes.
#include "braid/comm/local/transfer.h"

#include <cstring>

namespace braid::comm::local {

Transfer::Transfer(std::shared_ptr<const Membership> members, Route route, const Call& first, int64_t bytes)
    : Operation(members->world_state, 2), members_(std::move(members)), route_(route), first_(first) {
  if (bytes > 0) set_work(bytes, 2);
}

void Transfer::attach(int party, const Call& call, const at::Tensor& tensor) {
  sides_[party] = call;
  tensors_[party] = tensor;
  if (party == kSender) from_ = static_cast<const std::byte*>(tensor.const_data_ptr());
  if (party == kReceiver) to_ = static_cast<std::byte*>(tensor.mutable_data_ptr());
}

void Transfer::run(int64_t begin, int64_t end) {
  if (to_ != from_) std::memcpy(to_ + begin, from_ + begin, end - begin);
}

void Transfer::finish() {
  for (at::Tensor& tensor : tensors_) tensor.reset();
}

}  // namespace braid::comm::local
