// Tensors to rows.
#include "braid/nn/kernels/gelu.h"

#include <ATen/ops/empty_like.h>

#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"

namespace braid::kernels {
namespace {

void check_bias(const at::Tensor& h, const at::Tensor& bias) {
  check(bias.scalar_type() == h.scalar_type() && bias.numel() == h.size(-1) && bias.is_contiguous(),
        "a bias has its input's dtype and last extent");
}

}  // namespace

at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias) {
  if (on_device::takes(h)) return on_device::bias_gelu(h, bias);
  if (!h.is_cpu()) return composed::bias_gelu(h, bias);
  check_bias(h, bias);
  at::Tensor y = at::empty_like(h);
  with_type(h, [&](auto zero) {
    using T = decltype(zero);
    const GeluForwardRows<T> rows{h.size(-1), read<T>(h), read<T>(bias), write<T>(y)};
    parallel_rows(num_rows(h), h.size(-1), [&](RowRange range) { row_kernels<T>().gelu_forward(rows, range); });
  });
  return y;
}

at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy) {
  if (on_device::takes(h)) return on_device::bias_gelu_backward_(h, bias, dy);
  if (!h.is_cpu()) return composed::bias_gelu_backward_(h, bias, dy);
  check_bias(h, bias);
  check(dy.sizes() == h.sizes() && dy.scalar_type() == h.scalar_type() && dy.is_contiguous(), "dy is like h");
  at::Tensor dbias;
  with_type(h, [&](auto zero) {
    using T = decltype(zero);
    const GeluBackwardRows<T> rows{h.size(-1), read<T>(dy), read<T>(h), read<T>(bias), write<T>(h)};
    dbias = sums_over_rows<T>(h, 1, [&](RowRange range, MathOf<T>* to) {
              row_kernels<T>().gelu_backward(rows, range, to);
            }).select(0, 0);
  });
  return dbias;
}

}  // namespace braid::kernels
