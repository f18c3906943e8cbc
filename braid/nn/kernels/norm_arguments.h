// The arguments of the norm kernels: checks of tensors, and their memory as rows. The same for kernels of CPUs and of
// devices.
#pragma once

#include <ATen/ops/empty_like.h>

#include "braid/nn/kernels/norm.h"
#include "braid/nn/kernels/parallel_rows.h"

namespace braid::kernels {

// check() fails unless `b`, if it is defined, is like `a`.
inline void check_same(const at::Tensor& a, const at::Tensor& b) {
  check(!b.defined() || (b.scalar_type() == a.scalar_type() && b.sizes() == a.sizes() && b.is_contiguous() &&
                         b.device() == a.device()),
        "activations of one kernel call have one shape, dtype and device and are contiguous");
}

// check() fails unless `v`, if it is defined, has an element for each column of `x`.
inline void check_vector(const at::Tensor& x, const at::Tensor& v) {
  check(!v.defined() || (v.scalar_type() == x.scalar_type() && v.numel() == x.size(-1) && v.is_contiguous() &&
                         v.device() == x.device()),
        "parameters of a kernel call have its input's dtype, device and last extent");
}

inline void check_norm(const Addends& in, const NormParams& params) {
  check_vector(in.residual, params.weight);
  check_vector(in.residual, params.bias);
  check(params.weight.defined() && params.bias.defined() == (params.kind == NormKind::Layer),
        "LayerNorm has a weight and a bias, RMSNorm a weight");
}

inline void check_addends(const Addends& in) {
  check_same(in.residual, in.branch);
  check_vector(in.residual, in.branch_bias);
  check(in.branch.defined() || !in.branch_bias.defined(), "a branch's bias has a branch");
}

// Returns the results of a norm, not yet computed.
inline Normed empty_normed(const Addends& in, const NormParams& params) {
  const auto per_row = [&] {
    return at::empty({num_rows(in.residual)}, in.residual.options().dtype(math_type(in.residual)));
  };
  Normed out;
  out.sum = in.branch.defined() ? at::empty_like(in.residual) : in.residual;
  out.y = at::empty_like(in.residual);
  if (params.kind == NormKind::Layer) out.mean = per_row();
  out.rstd = per_row();
  return out;
}

template <class T>
NormForwardRows<T> rows_of(const Addends& in, const NormParams& params, const Normed& out) {
  return {.kind = params.kind,
          .width = in.residual.size(-1),
          .eps = static_cast<MathOf<T>>(params.eps),
          .residual = read<T>(in.residual),
          .branch = read<T>(in.branch),
          .branch_bias = read<T>(in.branch_bias),
          .sum = in.branch.defined() ? write<T>(out.sum) : nullptr,
          .weight = read<T>(params.weight),
          .bias = read<T>(params.bias),
          .y = write<T>(out.y),
          .mean = write<MathOf<T>>(out.mean),
          .rstd = write<MathOf<T>>(out.rstd),
          .offset = static_cast<MathOf<T>>(params.offset)};
}

template <class T>
NormBackwardRows<T> rows_of(const NormCotangents& d, const Normed& normed, const NormParams& params,
                            const NormGradients& out) {
  return {.kind = params.kind,
          .width = normed.sum.size(-1),
          .dsum = read<T>(d.dsum),
          .dy = read<T>(d.dy),
          .x = read<T>(normed.sum),
          .weight = read<T>(params.weight),
          .mean = read<MathOf<T>>(normed.mean),
          .rstd = read<MathOf<T>>(normed.rstd),
          .dx = write<T>(out.dx),
          .offset = static_cast<MathOf<T>>(params.offset)};
}

}  // namespace braid::kernels
