// SwiGLU, GeGLU and bias + GELU. On CPUs, tensors are passed to the row kernels as raw rows.
#include "braid/nn/kernels/activations.h"

#include <ATen/ops/empty_like.h>

#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"

namespace braid::kernels {

namespace {

// The row kernels of a gated activation.
enum class Gate { Silu, Gelu };

at::Tensor gated(const at::Tensor& gate_up, Gate gate) {
  check(gate_up.size(-1) % 2 == 0, "gate and up are halves of a row");
  std::vector<int64_t> sizes = gate_up.sizes().vec();
  sizes.back() /= 2;
  at::Tensor y = at::empty(sizes, gate_up.options());
  with_type(gate_up, [&](auto zero) {
    using T = decltype(zero);
    const GateForwardRows<T> rows{sizes.back(), read<T>(gate_up), write<T>(y)};
    const RowKernels<T>& kernels = best_kernels<RowKernels<T>>();
    const auto forward = gate == Gate::Silu ? kernels.swiglu_forward : kernels.geglu_forward;
    parallel_rows(num_rows(y), rows.width, [&](RowRange range) { forward(rows, range); });
  });
  return y;
}

void gated_backward_(const at::Tensor& gate_up, const at::Tensor& dy, Gate gate) {
  check(gate_up.size(-1) == 2 * dy.size(-1) && gate_up.numel() == 2 * dy.numel(), "gate and up are halves of a row");
  check(gate_up.scalar_type() == dy.scalar_type() && dy.is_contiguous(), "dy is like y");
  with_type(gate_up, [&](auto zero) {
    using T = decltype(zero);
    const GateBackwardRows<T> rows{dy.size(-1), read<T>(dy), read<T>(gate_up), write<T>(gate_up)};
    const RowKernels<T>& kernels = best_kernels<RowKernels<T>>();
    const auto backward = gate == Gate::Silu ? kernels.swiglu_backward : kernels.geglu_backward;
    parallel_rows(num_rows(dy), rows.width, [&](RowRange range) { backward(rows, range); });
  });
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up) {
  if (on_device::takes(gate_up)) return on_device::swiglu(gate_up);
  return gate_up.is_cpu() ? gated(gate_up, Gate::Silu) : composed::swiglu(gate_up);
}

void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy) {
  if (on_device::takes(gate_up)) return on_device::swiglu_backward_(gate_up, dy);
  gate_up.is_cpu() ? gated_backward_(gate_up, dy, Gate::Silu) : composed::swiglu_backward_(gate_up, dy);
}

at::Tensor geglu(const at::Tensor& gate_up) {
  return gate_up.is_cpu() ? gated(gate_up, Gate::Gelu) : composed::geglu(gate_up);
}

void geglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy) {
  gate_up.is_cpu() ? gated_backward_(gate_up, dy, Gate::Gelu) : composed::geglu_backward_(gate_up, dy);
}

namespace {

void check_bias(const at::Tensor& h, const at::Tensor& bias) {
  check(bias.scalar_type() == h.scalar_type() && bias.numel() == h.size(-1) && bias.is_contiguous(),
        "a bias has its input's dtype and last extent");
}

}  // namespace

at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias, GeluForm form) {
  const bool tanh = form == GeluForm::Tanh;
  if (tanh && on_device::takes(h)) return on_device::bias_gelu(h, bias);
  if (!h.is_cpu()) return composed::bias_gelu(h, bias, form);
  check_bias(h, bias);
  at::Tensor y = at::empty_like(h);
  with_type(h, [&](auto zero) {
    using T = decltype(zero);
    const GeluForwardRows<T> rows{h.size(-1), read<T>(h), read<T>(bias), write<T>(y)};
    const RowKernels<T>& kernels = best_kernels<RowKernels<T>>();
    const auto forward = tanh ? kernels.gelu_forward : kernels.gelu_erf_forward;
    parallel_rows(num_rows(h), h.size(-1), [&](RowRange range) { forward(rows, range); });
  });
  return y;
}

at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy, GeluForm form) {
  const bool tanh = form == GeluForm::Tanh;
  if (tanh && on_device::takes(h)) return on_device::bias_gelu_backward_(h, bias, dy);
  if (!h.is_cpu()) return composed::bias_gelu_backward_(h, bias, dy, form);
  check_bias(h, bias);
  check(dy.sizes() == h.sizes() && dy.scalar_type() == h.scalar_type() && dy.is_contiguous(), "dy is like h");
  at::Tensor dbias;
  with_type(h, [&](auto zero) {
    using T = decltype(zero);
    const GeluBackwardRows<T> rows{h.size(-1), read<T>(dy), read<T>(h), read<T>(bias), write<T>(h)};
    const RowKernels<T>& kernels = best_kernels<RowKernels<T>>();
    const auto backward = tanh ? kernels.gelu_backward : kernels.gelu_erf_backward;
    dbias = sums_over_rows<T>(h, 1, [&](RowRange range, MathOf<T>* to) { backward(rows, range, to); }).select(0, 0);
  });
  return dbias;
}

}  // namespace braid::kernels
