// Measures a transformer block at a model's shapes while all ranks run one: each matrix product, and everything else.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/run_spec.h"
#include "braid/train/host_probe.h"
#include "braid/train/peak_probe.h"
#include "braid/train/stage_profile.h"

namespace braid::train {

// A block of the model as training runs it, timed as a whole. The time beyond that of its kernels is spent in autograd,
// in allocations, and between kernels.
class BlockInTraining {
 public:
  // The block runs a microbatch of `spec`. `self` is a communicator of one rank and outlives this.
  // REQUIRES: spec.mesh.tensor is 1.
  BlockInTraining(const RunSpec& spec, Communicator& self);

  double round();          // returns its seconds
  double seconds() const;  // the median of the rounds
  // Returns the bytes that predictions count for passes over memory (plan/block_work.h), forward and backward.
  double streamed_bytes() const;

 private:
  const RunSpec spec_;
  const layout::ModelParams params_;
  ModelSample sample_;
  const ModelSample::Piece piece_;
  std::vector<double> seconds_;
};

// Rates of attention in operations per second. Only operations on visible tokens count, as in model/model_flops.h.
struct AttentionSpeed {
  double context = 0;
  double forward = 0, backward = 0;
};
template <class Pack>
void members(Pack& pack, AttentionSpeed& speed) {
  pack(speed.context, speed.forward, speed.backward);
}

struct BlockSpeed {
  // One for each size of layer, over its three passes (forward, input gradient, weight gradient); by ascending
  // operations.
  std::vector<ProductSpeed> products;
  AttentionSpeed attention;
  // All other kernels: their rate in the bytes that plan/block_work.h counts, and the bytes of a hidden state.
  CopySpeed elementwise;
};
template <class Pack>
void members(Pack& pack, BlockSpeed& speed) {
  pack(speed.products, speed.attention, speed.elementwise);
}

// Runs the kernels of a block of `spec` in the order of a step, for a rank's part of a microbatch. On CPUs, rounds
// alternate with a block as training runs it. Takes some tenths of a second, or three rounds if these take longer.
// Takes medians on each rank and means over ranks.
//
// Allocates the block's weights twice, in all types that a step has them in; at most 256 MiB beyond a tensor rank's own
// shard. No account of memory counts them. Throws RunError on all ranks if one has too little memory. Collective.
// Returns the same on all ranks.
BlockSpeed measured_block(const RunSpec& spec, at::Device device, Communicator& ranks);

// Measures blocks that represent those of any model, from narrow to wide, until a round of one takes more than 0.2
// seconds. Collective. Returns the same on all ranks.
std::vector<BlockSpeed> measured_blocks(DType dtype, at::Device device, Communicator& ranks);

// Measurements of a block: its seconds in training, the seconds of its products and attention, and the bytes that its
// other operations read and write.
struct BlockRemainder {
  double whole = 0, products = 0, bytes = 0;

  // Returns the rate of everything but products and attention, autograd and allocations included. It is at most `most`,
  // the rate of these kernels alone.
  double bytes_per_second(double most) const;
};

// Seconds of a block on all ranks:
//
//   apart     its kernels alone
//   in_step   its kernels, with an all-reduce of hidden states wherever tensor ranks have one
//   sums      these all-reduces alone, which all ranks begin together
struct BlockSeconds {
  double apart = 0, in_step = 0, sums = 0;

  // Returns the cost of waiting for the slowest rank, beyond the all-reduces, as a fraction of the compute time; at
  // least 0.
  double skew() const;
};

// Returns BlockSeconds::skew() of a block of `spec` on `ranks`. Takes as long as measured_block(). Throws RunError on
// all ranks if one has too little memory. Collective.
double measured_skew(const RunSpec& spec, at::Device device, Communicator& ranks);

}  // namespace braid::train
