// The copies that matrix products of 16-bit types make on CPUs (nn/kernels/product.h, nn/kernels/part_product.h).
#pragma once

#include "braid/plan/run_layout.h"

namespace braid::plan {

// A layer's product on one rank, y = x W^T: its input is [rows, inputs], its output [rows, outputs].
struct LayerProduct {
  double rows, inputs, outputs;
};

// Returns true if the type is multiplied in float32: 16-bit types on CPUs, except bfloat16 on those with instructions
// for it.
bool multiplies_widened(const PlannedRun& run);

// Returns the most bytes of copies that backward of the layer has at one time. With n rows, i inputs, o outputs and
// float32 copies, p of them those of a panel of the weight:
//
//   gradient of the input    4 (n o + p + n i)    in reproducible mode 4 (n o + p): results are rounded as they are
//   made gradient of the weight   4 (n o + n i)        if the CPU has bfloat16 products, 2 n i: the input in another
//   order
double backward_copies(const PlannedRun& run, const LayerProduct& layer, layout::ProductGradients gradients = {});

}  // namespace braid::plan
