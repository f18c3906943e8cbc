// Calls of the two kernels. That of a cap reads tokens as rows of heads.
#include "braid/nn/block_attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "braid/nn/attention.h"
#include "braid/nn/kernels/capped_attention.h"

namespace braid::nn {
namespace {

std::optional<double> scale_of(const ScoreForm& form) {
  return form.scale > 0 ? std::optional(form.scale) : std::nullopt;
}

// Returns tokens as rows of heads: sequences x tokens x (heads x features). They share the memory of x.
at::Tensor rows_of(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }
at::Tensor heads_of(const at::Tensor& rows, const at::Tensor& like) {
  return rows.unflatten(2, {like.size(1), -1}).transpose(1, 2);
}
at::Tensor empty_rows(const at::Tensor& x) {
  return at::empty({x.size(0), x.size(2), x.size(1) * x.size(3)}, x.options());
}

kernels::CappedTensors rows_of(const BlockTensors& x) { return {rows_of(x.q), rows_of(x.k), rows_of(x.v)}; }

// Returns the call for the keys that each query of the block sees, counted from the block's first key.
kernels::CappedAttention capped_call(const BlockTensors& x, const AttentionBlock& block, const ScoreForm& form) {
  at::Tensor first = at::zeros({block.num_queries}, at::kLong);
  at::Tensor end = at::full({block.num_queries}, block.num_keys, at::kLong);
  if (block.causal || block.window > 0) {
    end = at::arange(1, block.num_queries + 1, at::kLong).add_(block.query - block.key).clamp_max_(block.num_keys);
  }
  if (block.window > 0) {
    first = at::arange(block.num_queries, at::kLong).add_(block.query - block.key - block.window + 1).clamp_min_(0);
  }
  const auto of_sequences = [&](const at::Tensor& keys) {
    return keys.expand({block.num_sequences, block.num_queries}).contiguous();
  };
  return {x.q.size(1),         x.k.size(1),      form.cap, score_scale(form.scale, x.q.size(3)),
          of_sequences(first), of_sequences(end)};
}

}  // namespace

BlockOutput attend_block(const BlockTensors& x, const AttentionBlock& block, const ScoreForm& form) {
  if (form.cap > 0) {
    const kernels::CappedOutput output = kernels::capped_attention(rows_of(x), capped_call(x, block, form));
    return {heads_of(output.y_btf, x.q), output.norm_bht};
  }
  const auto [y, log] = at::_scaled_dot_product_flash_attention_for_cpu(x.q, x.k, x.v, 0.0, block.causal,
                                                                        mask_of(block, x.q.options()), scale_of(form));
  return {y, log};
}

BlockTensors attend_block_backward(const BlockTensors& x, const BlockOutput& output, const at::Tensor& dy,
                                   const AttentionBlock& block, const ScoreForm& form) {
  if (form.cap > 0) {
    const kernels::CappedTensors gradients{empty_rows(x.q), empty_rows(x.k), empty_rows(x.v)};
    kernels::capped_attention_backward(rows_of(x), capped_call(x, block, form),
                                       {rows_of(output.y), output.log.contiguous()}, rows_of(dy), gradients);
    return {heads_of(gradients.q_btf, x.q), heads_of(gradients.k_bsf, x.k), heads_of(gradients.v_bsf, x.v)};
  }
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dy, x.q, x.k, x.v, output.y, output.log, 0.0, block.causal, mask_of(block, x.q.options()), scale_of(form));
  return {dq, dk, dv};
}

}  // namespace braid::nn
