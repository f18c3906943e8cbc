// out = beta * out + dy^T x on bfloat16 rows with float32 sums, by AVX512-BF16.
#pragma once

#include <cstdint>

namespace braid::kernels {

// A matrix of bfloat16 whose rows are contiguous; `stride` elements from row to row.
struct RowsBf16 {
  const uint16_t* data = nullptr;
  int64_t stride = 0;
};

struct ProductBf16 {
  RowsBf16 dy;                  // [n, o]
  RowsBf16 x;                   // [n, i]
  int64_t n = 0, o = 0, i = 0;  // n > 0
  double beta = 0;              // 0: out is not read; 1
  float* out = nullptr;         // [o, i], contiguous
};

// Returns true if this processor has bfloat16 products.
bool has_product_bf16();

// Splits over the calling thread's at::parallel_for. Each element is summed by one thread in an order that depends on n
// alone: blocks of 256 rows, in a block pairs of rows, then the blocks. Subnormal inputs count as zero.
void product_bf16(const ProductBf16& call);

}  // namespace braid::kernels
