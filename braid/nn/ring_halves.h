// The places of tokens around a ring of ranks.
//
// A causal rank with late tokens has more keys to meet than one with early tokens. So sequences are cut into 2n halves,
// and around the ring rank r has halves r and 2n - 1 - r (head and tail), which makes all ranks' work equal:
//
//   2 ranks               of the hidden state     around the ring
//   rank 0                half 0, half 1          half 0, half 3
//   rank 1                half 2, half 3          half 1, half 2
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "braid/comm/communicator.h"
#include "braid/nn/attention_blocks.h"

namespace braid::nn {

// The halves of the sequences, and their ranks.
struct Halves {
  Halves(Communicator& its_ranks, int64_t own_tokens);
  int64_t count() const { return 2 * ranks.size(); }
  // Returns the rank that has the half around the ring.
  int ring_rank(int64_t half) const { return static_cast<int>(half < ranks.size() ? half : count() - 1 - half); }
  // Return the halves of a rank around the ring, and of the hidden state.
  std::array<int64_t, 2> of_ring(int rank) const { return {rank, count() - 1 - rank}; }
  std::array<int64_t, 2> in_order(int rank) const { return {2 * int64_t{rank}, 2 * int64_t{rank} + 1}; }
  TokenRange tokens(int64_t half) const { return {half * length, (half + 1) * length}; }
  // Messages are tagged by their half, since two halves may go between the same ranks.
  int keys_tag() const { return static_cast<int>(count()); }
  int gradients_tag() const { return static_cast<int>(count()) + 1; }

  Communicator& ranks;
  const int64_t length;
};

// Moves the halves of x_btf to their ranks around the ring. Returns this rank's two there, [2, b, t/2, f].
at::Tensor to_ring(const at::Tensor& x_btf, const Halves& halves);
// Moves the halves back, into out_btf. x_2bsf: this rank's two around the ring.
void from_ring(const at::Tensor& x_2bsf, const Halves& halves, const at::Tensor& out_btf);

}  // namespace braid::nn
