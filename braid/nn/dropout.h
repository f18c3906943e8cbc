// Dropout on replicated activations. The mask is a function of (microbatch, place in the model), so it is the same on
// every tensor rank, on every mesh and device and when a block is computed again.
//
// There is no dropout on attention probabilities: heads are split over ranks, and LibTorch's fused attention kernels
// draw their masks from a generator, not from a key.
#pragma once

#include "braid/nn/block.h"

namespace braid::nn {

class Dropout {
 public:
  struct Options {
    double probability = 0;
    int block = 0;  // place in the model's list of blocks
    int site = 0;   // place in the block
  };
  explicit Dropout(const Options& options) : options_(options) {}
  // Scales what it keeps by 1 / (1 - probability). The identity when not training or when the probability is 0.
  at::Tensor forward(const at::Tensor& x, const Microbatch& microbatch) const;
  bool active(const Microbatch& microbatch) const { return options_.probability != 0 && microbatch.training; }

 private:
  Options options_;
};

}  // namespace braid::nn
