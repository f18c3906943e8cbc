// The product of product_bf16.h by AMX, on processors that have it.
#pragma once

#include "braid/nn/kernels/product_bf16.h"

namespace braid::kernels {

// Returns true if this processor has AMX-BF16, and the system lets the process use it. The first call asks the system.
bool has_product_amx();

// As product_bf16(). One thread sums each element, in an order that depends only on n: over 16 pairs of rows at a time,
// first elements and second elements of pairs apart, within a block of 1024 rows, then over the blocks. REQUIRES:
// has_product_amx().
void product_amx(const ProductBf16& call);

}  // namespace braid::kernels
