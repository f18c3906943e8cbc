// The product out = beta * out + dy^T x of bfloat16 rows with float32 sums.
#pragma once

#include <cstdint>

#include "braid/nn/kernels/tile_sums.h"

namespace braid::kernels {

// A matrix of bfloat16 whose rows are contiguous. `stride` is the distance between rows, in elements.
struct RowsBf16 {
  const uint16_t* data = nullptr;
  int64_t stride = 0;
};

struct ProductBf16 {
  RowsBf16 dy;                  // [n, o]
  RowsBf16 x;                   // [n, i]
  int64_t n = 0, o = 0, i = 0;  // n > 0
  double beta = 0;              // 0 or 1; with 0, out is not read
  float* out = nullptr;         // [o, i], contiguous
};

// Returns true if this processor has AVX512-BF16.
bool has_product_bf16();

// Computes the product by AMX (product_amx.h) where the processor has it, else by AVX512-BF16. Divides the work with
// the calling thread's at::parallel_for. One thread sums each element, in an order that depends only on n and on the
// processor. Subnormal inputs and sums count as zero. REQUIRES: has_product_bf16().
void product_bf16(const ProductBf16& call);
// The same by AVX512-BF16. The sum of an element is over pairs of rows within a block of 256 rows, then over the
// blocks.
void product_avx512(const ProductBf16& call);

// Returns the tiles of bfloat16 operands, of AMX (amx_tiles.h) where the processor has it. REQUIRES:
// has_product_bf16(); to multiply, the thread is in a scope of WholeTiles (amx_registers.h).
const TileKernels& pair_tiles();
// Returns those of AVX512-BF16: a packed element is a pair of inner elements, and sums are float32. A pair is one step
// of a sum.
const TileKernels& avx512_tiles();

}  // namespace braid::kernels
