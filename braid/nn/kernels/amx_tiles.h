// Tiles of bfloat16 operands (tile_sums.h) by AMX.
#pragma once

#include "braid/nn/kernels/tile_sums.h"

namespace braid::kernels {

// A packed element is 32 inner elements, and sums are float32. One step of a sum is over 16 pairs. REQUIRES:
// has_product_amx(); to multiply, the thread is in a scope of WholeTiles (amx_registers.h).
const TileKernels& amx_tiles();

}  // namespace braid::kernels
