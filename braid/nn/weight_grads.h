// The kinds of weight gradient that layers leave on the queue, and how each is written into its slot.
//
// Slots are float32 under parameters of bfloat16 and float16, else of the parameters' type; nothing is rounded before
// it is added. Every push keeps its tensors alive until the queue has run it. n rows (b x t), i inputs, o outputs, c
// features.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/nn/block.h"

namespace braid::nn {

// One of the places where the model reads a parameter.
struct ParamUse {
  const param::Parameter* param = nullptr;
  int use = 0;
};

// The destination of the gradient of one use by one microbatch. Captured at forward.
struct GradTarget {
  param::WeightGradQueue* queue = nullptr;
  ParamUse param;
  int micro = 0;
};

// slot = beta * slot + dy^T x, of shape [o, i]: kernels/product.h.
void push_product(const GradTarget& target, at::Tensor dy_no, at::Tensor x_ni);
// slot = beta * slot + sum over rows. The parameter's elements beyond the summed ones (positions that the batch does
// not reach) get zero.
void push_row_sum(const GradTarget& target, at::Tensor dy_nc);
// slot = beta * slot; slot[rows[k]] += dy[k]. With beta 0 the whole table is cleared; in fast mode that happens once a
// step at most, and not at all under a tied head, whose product comes first.
void push_scattered_rows(const GradTarget& target, at::Tensor dy_nc, at::Tensor rows_n);
// slot = beta * slot + gradient.
void push_value(const GradTarget& target, at::Tensor gradient);

}  // namespace braid::nn
