// Optimizer states stored in 8 bits: for each block of kStateBlock elements a float32 scale, the largest magnitude of
// the block, and for each element the code of a value in [-1, 1], to be multiplied by the scale. Values are those of
// dynamic tree quantization: one bit of the code per decade down to 1e-7, then one that ends them, and the rest of the
// bits divide the decade into equal parts, whose centres are the values. The code is completed by 0 and 1.
//
//   decade          [0.1, 1]   [0.01, 0.1]   [1e-3, 0.01]   ...   [1e-7, 1e-6]
//   signed             64          32            16         ...        1          and as many negative ones
//   non-negative      128          64            32         ...        2
//
// A value becomes the nearest one. The exception is a positive value of a state that is never negative: it becomes at
// least the least positive value, because a root of a second moment of zero would divide a first moment that is not.
//
// Sources: Dettmers et al., "8-bit Optimizers via Block-wise Quantization" (ICLR 2022), sections 2 and 3; Dettmers,
// "8-Bit Approximations for Parallelism in Deep Learning" (ICLR 2016), for the dynamic tree; Li et al., "Memory
// Efficient Optimizers with 4-bit States" (NeurIPS 2023), section 4.1, for second moments of zero.
#pragma once

#include <cstdint>

#include "braid/optim/element_update.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

// Returns the value of a code, in [-1, 1]. The value of code 0 is 0.
float code_value(uint8_t code, StateSign sign);

// Quantizes `count` elements, and computes them back. A block that has a NaN becomes NaN as a whole; in one that has an
// infinite value, no element remains finite. REQUIRES: `count` is a multiple of kStateBlock.
void quantize(const float* from, int64_t count, StateSign sign, uint8_t* codes, float* scales);
void dequantize(const uint8_t* codes, const float* scales, int64_t count, StateSign sign, float* to);

}  // namespace braid::optim
