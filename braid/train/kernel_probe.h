// Measures a model's block at its shapes while all ranks run one: each matrix product, and the rest.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/run_spec.h"
#include "braid/train/host_probe.h"
#include "braid/train/peak_probe.h"
#include "braid/train/stage_profile.h"

namespace braid::train {

// A block of the model as training runs it, timed whole: what its kernels leave of that is autograd, memory that is
// taken anew, and what lies between them.
class BlockInTraining {
 public:
  // A microbatch of `spec`, whose tensor ranks are one; `self`, which outlives this, is a rank by itself.
  BlockInTraining(const RunSpec& spec, Communicator& self);

  double round();          // returns its seconds
  double seconds() const;  // the median of the rounds
  // Returns the bytes that predictions count for passes over memory (plan/block_work.h), forward and backward.
  double streamed_bytes() const;

 private:
  const RunSpec spec_;
  const param::ModelParams params_;
  ModelSample sample_;
  const ModelSample::Piece piece_;
  std::vector<double> seconds_;
};

// Operations a second on what tokens see, as spec/model_flops.h counts them.
struct AttentionSpeed {
  double context = 0;
  double forward = 0, backward = 0;
};
template <class Pack>
void members(Pack& pack, AttentionSpeed& speed) {
  pack(speed.context, speed.forward, speed.backward);
}

struct BlockSpeed {
  std::vector<ProductSpeed> products;  // by ascending operations: of each layer's size over its three passes
  AttentionSpeed attention;
  CopySpeed elementwise;  // all that is neither, by the bytes of plan/block_work.h and of a hidden state
};
template <class Pack>
void members(Pack& pack, BlockSpeed& speed) {
  pack(speed.products, speed.attention, speed.elementwise);
}

// Runs the kernels of a block of `spec` in the order of a step, for a microbatch of a tensor rank, in turns with the
// block as training does, on CPUs: some tenths of a second, or at least three rounds. Takes medians on each rank and
// means over ranks. What it allocates counts to no rank: the block's weights in all types that a step has them in,
// twice, at most 256 MiB beside a tensor rank's own. RunError on all ranks where one has no memory for it. Collective;
// the same on all ranks.
BlockSpeed measured_block(const RunSpec& spec, at::Device device, Communicator& ranks);

// Measures blocks that represent those of any model, from narrow to wide, until one takes more than 0.2 seconds.
// Collective; the same on all ranks.
std::vector<BlockSpeed> measured_blocks(DType dtype, at::Device device, Communicator& ranks);

// Seconds of a block as training runs it and of its products and attention, and what it streams beside these.
struct BlockRemainder {
  double whole = 0, products = 0, bytes = 0;

  // Returns the rate of everything but the products, autograd and fresh memory included; at most `most`, the rate of
  // its kernels alone.
  double bytes_per_second(double most) const;
};

// Times of a block on all ranks: of its kernels alone, of kernels with an all-reduce of hidden states wherever tensor
// ranks have one, and of these all-reduces alone, which all ranks begin together.
struct BlockSeconds {
  double apart = 0, in_step = 0, sums = 0;

  // Returns the cost of waiting for the slowest rank, beyond the all-reduces, as a fraction of the compute time; at
  // least 0.
  double skew() const;
};

// skew() of a block of `spec` on `ranks`. As long as measured_block(); collective.
double measured_skew(const RunSpec& spec, at::Device device, Communicator& ranks);

}  // namespace braid::train
