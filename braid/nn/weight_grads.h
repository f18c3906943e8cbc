// The kinds of weight gradient that layers leave on the queue, and the way in which each is written into its slot.
//
// Slots are float32 for parameters of bfloat16 and float16, else of the parameters' type. Nothing is rounded before it
// is added. Every push keeps its tensors alive until the queue has run it. Shapes: n rows (b x t), i inputs, o outputs,
// c features.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>

#include "braid/nn/block.h"
#include "braid/nn/kernels/part_product.h"

namespace braid::nn {

// One use of a parameter: a place where the model reads it.
struct ParamUse {
  const param::Parameter* param = nullptr;
  int use = 0;
};
// Returns the last use in the whole model: that of the head, where the table is tied to the embedding.
inline ParamUse last_use(const param::Parameter& param) { return {&param, param.uses - 1}; }

// The destination of a weight gradient, for one use and one microbatch. Captured in forward.
struct GradTarget {
  param::WeightGradQueue* queue = nullptr;
  ParamUse param;
  int micro = 0;
};

// Multiplies for a layer that uses `queue`: by kernels::product_in_parts() if sums have parts, else by
// kernels::product_out().
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const param::WeightGradQueue& queue,
              const kernels::InnerParts& parts, const at::Tensor& bias = {});

// Returns the data of a trained parameter among `params`, which may be null; nothing if there is none. As an input of
// an autograd Function, it makes the output need a gradient.
std::optional<at::Tensor> any_trained(std::initializer_list<const param::Parameter*> params);

// Each push does nothing for a frozen parameter. Pushes slot = beta * slot + dy^T x, of shape [o, i]
// (kernels/product.h).
void push_product(const GradTarget& target, at::Tensor dy_no, at::Tensor x_ni);
// Pushes slot = beta * slot + the sum over rows, which are elements `begin` .. of the parameter. Its other elements
// (positions that the rank's tokens do not reach) get zero. Without sequence parallelism the product before the op
// keeps dY too. With it, the product has the gathered dY, so the rank's own is summed here and not kept.
void push_row_sum(const GradTarget& target, at::Tensor dy_nc, int64_t begin = 0);
// Pushes the sum over the tokens of a hidden state, which tensor ranks split under sequence parallelism.
void push_token_sum(const GradTarget& target, const at::Tensor& dy_btc);
// Pushes slot = beta * slot; slot[rows[k]] += dy[k]. With beta 0 the whole table is cleared. In fast mode that happens
// at most once a step, and never for a tied head, whose product comes first.
void push_scattered_rows(const GradTarget& target, at::Tensor dy_nc, at::Tensor rows_n);
// Pushes slot = beta * slot + gradient.
void push_value(const GradTarget& target, at::Tensor gradient);

}  // namespace braid::nn
