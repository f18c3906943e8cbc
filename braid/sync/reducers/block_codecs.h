// Codecs with few bits per element and separate scales for every block of 1024 elements.
#pragma once

#include "braid/sync/reducers/codec.h"

namespace braid::sync {

inline constexpr int64_t kCodecBlock = 1024;  // elements

// A codec with one bit per element, its sign. An element is decoded as the mean of its block's elements of that sign,
// which minimises the squared error. Source: Seide et al., "1-Bit Stochastic Gradient Descent" (Interspeech 2014),
// section 3.1, with blocks in place of a matrix's columns.
//
//   message, block by block   float32 mean of those >= 0 | float32 mean of those < 0 | bits, lowest first, 1: >= 0
class OneBitCodec final : public Codec {
 public:
  int64_t num_bytes(int64_t count) const override;
  void encode(const at::Tensor& values, std::byte* message) const override;
  void add(const std::byte* message, const at::Tensor& sum) const override;
};

// A codec with eight bits per element: multiples -127 .. 127 of a step, rounded to the nearest, ties to even. The step
// is the block's largest magnitude / 127. Source: Dettmers, "8-Bit Approximations for Parallelism in Deep Learning"
// (ICLR 2016), section 2.1 (linear), with the blocks of Dettmers et al., "8-bit Optimizers via Block-wise Quantization"
// (ICLR 2022), section 2.1.
//
//   message, block by block   float32 step | int8 x elements
class EightBitCodec final : public Codec {
 public:
  int64_t num_bytes(int64_t count) const override;
  void encode(const at::Tensor& values, std::byte* message) const override;
  void add(const std::byte* message, const at::Tensor& sum) const override;
};

}  // namespace braid::sync
