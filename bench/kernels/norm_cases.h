// Norms, alone and with the residual addition.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include "bench/kernels/kernel_case.h"
#include "braid/base/text.h"
#include "braid/nn/kernels/norm.h"
#include "braid/nn/kernels/row_sum.h"

namespace braid::bench {

struct NormTensors {
  NormTensors(int64_t rows, int64_t width, at::ScalarType t)
      : residual(random({rows, width}, t)),
        branch(random({rows, width}, t)),
        dsum(random({rows, width}, t)),
        dy(random({rows, width}, t)),
        weight(random({width}, t)),
        bias(random({width}, t)),
        branch_bias(random({width}, t)) {}
  at::Tensor residual, branch, dsum, dy, weight, bias, branch_bias;
};

// The work of RMSNorm's backward as LibTorch's operations, in float32 as transformers does it.
inline at::Tensor composed_rms_backward(const NormTensors& in, const at::Tensor& sum, const at::Tensor& rstd) {
  const at::Tensor n = sum.to(at::kFloat).mul(rstd), dy = in.dy.to(at::kFloat), g = dy.mul(in.weight);
  const at::Tensor dweight = dy.mul(n).sum(0);
  return g.sub(n.mul(g.mul(n).mean(-1, true))).mul(rstd).to(sum.scalar_type()).add(in.dsum);
}

inline void add_norm_cases(std::vector<KernelCase>& cases, kernels::NormKind kind, at::IntArrayRef shape,
                           at::ScalarType dtype) {
  const bool layer = kind == kernels::NormKind::Layer;
  const auto in = std::make_shared<NormTensors>(shape[0], shape[1], dtype);
  const kernels::NormParams params{kind, in->weight, layer ? in->bias : at::Tensor(), 1e-5};
  const auto normed = std::make_shared<kernels::Normed>(
      kernels::norm_forward({in->residual, in->branch, layer ? in->branch_bias : at::Tensor()}, params));
  const std::string name = layer ? "LayerNorm" : "RMSNorm", size = cat(shape[0], " x ", shape[1]);
  const double bytes = bytes_of({in->residual, in->branch, in->dsum, in->dy});
  cases.push_back(
      {cat("residual + ", name, ", forward"),
       size,
       bytes,
       {},
       [=] {
         kernels::norm_forward({in->residual, in->branch, layer ? in->branch_bias : at::Tensor()}, params);
       },
       [=] {
         if (layer) {
           const at::Tensor sum = in->residual.add(in->branch.add_(in->branch_bias));
           at::native_layer_norm(sum, {sum.size(-1)}, in->weight, in->bias, 1e-5);
         } else {
           const at::Tensor wide = in->residual.add(in->branch).to(at::kFloat);
           wide.mul(wide.square().mean(-1, true).add_(1e-5).rsqrt_()).to(in->weight.scalar_type()).mul_(in->weight);
         }
       }});
  const at::Tensor rstd = normed->rstd.unsqueeze(1);
  const at::Tensor sum = at::empty({shape[1]}, rstd.options());
  const auto theirs = at::native_layer_norm(normed->sum, {shape[1]}, in->weight, in->bias, 1e-5);
  cases.push_back({cat("residual + ", name, ", backward"),
                   size,
                   bytes,
                   {},
                   [=] {
                     const at::Tensor dx = kernels::norm_backward({in->dsum, in->dy}, *normed, params).dx;
                     if (layer) kernels::accumulate_row_sum(sum, dx, 0);  // of the branch's bias
                   },
                   [=] {
                     if (layer) {
                       const at::Tensor dx = std::get<0>(at::native_layer_norm_backward(
                           in->dy, normed->sum, {normed->sum.size(-1)}, std::get<1>(theirs), std::get<2>(theirs),
                           in->weight, in->bias, {true, true, true}));
                       const at::Tensor dbias = dx.add_(in->dsum).sum(0);
                     } else {
                       composed_rms_backward(*in, normed->sum, rstd);
                     }
                   }});
  cases.push_back({"residual + branch + bias",
                   size,
                   bytes * 3 / 4,
                   {},
                   [=] {
                     kernels::sum_of({in->residual, in->branch, in->branch_bias});
                   },
                   [=] { in->residual.add(in->branch.add_(in->branch_bias)); }});
}

}  // namespace braid::bench
