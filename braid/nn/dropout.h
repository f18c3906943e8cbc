// Dropout on replicated activations. The mask is a function of the microbatch and the place in the model. So it is the
// same on every tensor rank, mesh and device, and when a block is recomputed. Of activations whose tokens are split
// over tensor ranks, each rank draws its part of that mask.
//
// There is no dropout on attention probabilities, for two reasons: heads are split over ranks, and LibTorch's fused
// attention kernels draw their masks from a generator, not from a key.
#pragma once

#include "braid/nn/block.h"

namespace braid::nn {

class Dropout {
 public:
  struct Options {
    double probability = 0;
    int block = 0;                   // index in the model's list of blocks
    int site = 0;                    // index among the dropouts of the block
    kernels::TokenPart tokens = {};  // those that the rank has
  };
  explicit Dropout(const Options& options) : options_(options) {}
  // Zeroes elements with `probability` and scales the others by 1 / (1 - probability). Returns x itself when not
  // training or when the probability is 0.
  at::Tensor forward(const at::Tensor& x, const Microbatch& microbatch) const;
  bool active(const Microbatch& microbatch) const { return options_.probability != 0 && microbatch.training; }

 private:
  Options options_;
};

}  // namespace braid::nn
