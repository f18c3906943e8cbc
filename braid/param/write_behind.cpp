#include "braid/param/write_behind.h"

#include <utility>

namespace braid::param {

void WriteBehind::write(const at::Tensor& flat, const at::Tensor& part, at::Tensor memory) {
  finish();
  const disk::Ticket ticket = disk_.write(flat, part);
  last_ = {ticket, std::move(memory)};
}

void WriteBehind::finish() {
  if (!last_) return;
  disk_.disk().wait(last_->ticket);
  written_(std::exchange(last_, std::nullopt)->memory);
}

}  // namespace braid::param
