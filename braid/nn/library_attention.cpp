// The call in the type itself, and in float32.
#include "braid/nn/library_attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "braid/nn/kept.h"
#include "braid/nn/kernels/product.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

at::Tensor native_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const LibraryOptions& options) {
  const bool grouped = q.size(1) != k.size(1), causal = !options.mask_ts && options.sees == model::Sees::Earlier;
  return at::scaled_dot_product_attention(q, k, v, options.mask_ts, 0.0, causal, options.scale, grouped);
}

// Attention for types that the CPU does not multiply natively. It computes in float32 and rounds once. It saves only
// the narrow tensors, and backward repeats the forward pass.
struct WidenedAttention : Function<WidenedAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const LibraryOptions& options) {
    ctx->save_for_backward({q, k, v});
    keep(ctx, options);
    return native_attention(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), widened(options)).to(q.scalar_type());
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const c10::AutoGradMode grad(true);
    variable_list wide = ctx->get_saved_variables();
    const at::ScalarType type = wide[0].scalar_type();
    for (at::Tensor& x : wide) x = x.detach().to(at::kFloat).requires_grad_();
    const at::Tensor y = native_attention(wide[0], wide[1], wide[2], widened(kept<LibraryOptions>(ctx)));
    variable_list dx = torch::autograd::grad({y}, wide, {grads[0].to(at::kFloat)});
    for (at::Tensor& x : dx) x = x.to(type);
    dx.emplace_back();
    return dx;
  }
  static LibraryOptions widened(LibraryOptions options) {
    if (options.mask_ts) options.mask_ts = options.mask_ts->to(at::kFloat);
    return options;
  }
};

}  // namespace

at::Tensor library_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const LibraryOptions& options) {
  const bool widened = q.is_cpu() && !kernels::multiplies_on_cpu(q.scalar_type());
  return widened ? WidenedAttention::apply(q, k, v, options) : native_attention(q, k, v, options);
}

}  // namespace braid::nn
