// Both moves are one batch of messages; halves that stay are copied.
#include "braid/nn/ring_halves.h"

#include <ATen/ops/empty.h>

#include <vector>

#include "braid/base/errors.h"

namespace braid::nn {

Halves::Halves(Communicator& its_ranks, int64_t own_tokens) : ranks(its_ranks), length(own_tokens / 2) {
  check(own_tokens % 2 == 0, "a rank has an even number of tokens");
}

at::Tensor to_ring(const at::Tensor& x_btf, const Halves& halves) {
  const int own = halves.ranks.rank();
  const auto here = halves.in_order(own), there = halves.of_ring(own);
  const at::Tensor moved = at::empty({2, x_btf.size(0), halves.length, x_btf.size(2)}, x_btf.options());
  std::vector<P2p> transfers;
  for (int place = 0; place < 2; ++place) {
    const at::Tensor half = x_btf.narrow(1, place * halves.length, halves.length);
    const int peer = halves.ring_rank(here[place]), tag = static_cast<int>(here[place]);
    if (peer == own) moved[here[place] == there[0] ? 0 : 1].copy_(half);
    if (peer != own) transfers.push_back({P2p::Kind::Send, half.contiguous(), peer, tag});
  }
  for (int place = 0; place < 2; ++place) {
    const auto peer = static_cast<int>(there[place] / 2);
    if (peer != own) transfers.push_back({P2p::Kind::Recv, moved[place], peer, static_cast<int>(there[place])});
  }
  halves.ranks.batch(transfers).order_before(halves.ranks.queue());
  return moved;
}

void from_ring(const at::Tensor& x_2bsf, const Halves& halves, const at::Tensor& out_btf) {
  const int own = halves.ranks.rank();
  const auto here = halves.of_ring(own), there = halves.in_order(own);
  std::vector<P2p> transfers;
  std::array<at::Tensor, 2> parts;
  for (int place = 0; place < 2; ++place) {
    const auto peer = static_cast<int>(here[place] / 2);
    if (peer == own) parts[here[place] - there[0]] = x_2bsf[place];
    if (peer != own) transfers.push_back({P2p::Kind::Send, x_2bsf[place], peer, static_cast<int>(here[place])});
  }
  for (int place = 0; place < 2; ++place) {
    if (parts[place].defined()) continue;
    parts[place] = at::empty(x_2bsf[0].sizes(), x_2bsf.options());
    const int peer = halves.ring_rank(there[place]);
    transfers.push_back({P2p::Kind::Recv, parts[place], peer, static_cast<int>(there[place])});
  }
  halves.ranks.batch(transfers).order_before(halves.ranks.queue());
  for (int place = 0; place < 2; ++place) {
    out_btf.narrow(1, place * halves.length, halves.length).copy_(parts[place]);
  }
}

}  // namespace braid::nn
