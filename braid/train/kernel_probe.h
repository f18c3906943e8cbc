// How fast the kernels of a model's block are at its shapes, when all ranks run them at once. It knows no stages.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/run_spec.h"
#include "braid/train/host_probe.h"
#include "braid/train/peak_probe.h"

namespace braid {

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
  CopySpeed elementwise;  // norms, sums and activation, by the bytes of predict/block_work.h and of a hidden state
};
template <class Pack>
void members(Pack& pack, BlockSpeed& speed) {
  pack(speed.products, speed.attention, speed.elementwise);
}

// Runs the kernels of a block of `spec` in the order of a step, for a microbatch of a tensor rank, some tenths of a
// second, and takes medians on each rank and means over ranks. Products are in unaccounted memory.
// Collective; the same on all ranks.
BlockSpeed measured_block(const RunSpec& spec, at::Device device, Communicator& ranks);

// Of blocks that stand for those of any model, from narrow to wide, until one takes more than some tenths of a second.
// Collective; the same on all ranks.
std::vector<BlockSpeed> measured_blocks(DType dtype, at::Device device, Communicator& ranks);

// By how much longer a block of `spec` takes where `ranks` sum hidden states wherever tensor ranks do, than where they
// do not: 0.2 for a fifth. As long as one of the others; collective.
double measured_skew(const RunSpec& spec, at::Device device, Communicator& ranks);

}  // namespace braid
