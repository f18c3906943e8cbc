// Norms, activation functions and rotation on a device. Tensors are passed to kernels through the table of
// libbraid_cuda.so.
#include "braid/nn/kernels/on_device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "braid/nn/kernels/norm_arguments.h"
#include "braid/nn/kernels/table_call.h"

namespace braid::kernels::on_device {
namespace {

void run_forward(const Addends& in, const NormParams& params, const Normed& out) {
  check_addends(in);
  with_table(in.residual, [&](const auto& table, auto zero) {
    const auto rows = rows_of<decltype(zero)>(in, params, out);
    device::require_launched(table.norm_forward(rows, num_rows(in.residual), stream_of(in.residual)));
  });
}

}  // namespace

bool takes(const at::Tensor& x) { return x.is_cuda() && device::cuda_is_loaded(); }

Normed norm_forward(const Addends& in, const NormParams& params) {
  check_norm(in, params);
  const Normed out = empty_normed(in, params);
  run_forward(in, params, out);
  return out;
}

NormGradients norm_backward(const NormCotangents& d, const Normed& normed, const NormParams& params) {
  check_same(normed.sum, d.dy);
  check_same(normed.sum, d.dsum);
  check_vector(normed.sum, params.weight);
  const Sums sums(normed.sum, 2, row_parts(num_rows(normed.sum), 1));
  NormGradients out;
  out.dx = at::empty_like(normed.sum);
  with_table(normed.sum, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    const auto rows = rows_of<T>(d, normed, params, out);
    device::require_launched(table.norm_backward(rows, sums.call<MathOf<T>>(), stream_of(normed.sum)));
  });
  out.dweight = sums.to.select(0, 0);
  out.dbias = sums.to.select(0, 1);
  return out;
}

at::Tensor sum_of(const Addends& in) {
  Normed out;
  out.sum = at::empty_like(in.residual);
  run_forward(in, {}, out);
  return out.sum;
}

at::Tensor bias_gelu(const at::Tensor& h, const at::Tensor& bias) {
  check_vector(h, bias);
  const at::Tensor y = at::empty_like(h);
  with_table(h, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    const GeluForwardRows<T> rows{h.size(-1), read<T>(h), read<T>(bias), write<T>(y)};
    device::require_launched(table.gelu_forward(rows, num_rows(h), stream_of(h)));
  });
  return y;
}

at::Tensor bias_gelu_backward_(const at::Tensor& h, const at::Tensor& bias, const at::Tensor& dy) {
  check_vector(h, bias);
  check_same(h, dy);
  const Sums sums(h, 1, column_parts(num_rows(h), h.size(-1)));
  with_table(h, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    const GeluBackwardRows<T> rows{h.size(-1), read<T>(dy), read<T>(h), read<T>(bias), write<T>(h)};
    device::require_launched(table.gelu_backward(rows, sums.call<MathOf<T>>(), stream_of(h)));
  });
  return sums.to.select(0, 0);
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  std::vector<int64_t> sizes = gate_up.sizes().vec();
  check(sizes.back() % 2 == 0, "gate and up are halves of a row");
  sizes.back() /= 2;
  const at::Tensor y = at::empty(sizes, gate_up.options());
  with_table(gate_up, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    const GateForwardRows<T> rows{sizes.back(), read<T>(gate_up), write<T>(y)};
    device::require_launched(table.swiglu_forward(rows, num_rows(y), stream_of(gate_up)));
  });
  return y;
}

void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy) {
  check(gate_up.size(-1) == 2 * dy.size(-1) && gate_up.numel() == 2 * dy.numel(), "gate and up are halves of a row");
  check(gate_up.scalar_type() == dy.scalar_type() && dy.is_contiguous(), "dy is like y");
  with_table(gate_up, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    const GateBackwardRows<T> rows{dy.size(-1), read<T>(dy), read<T>(gate_up), write<T>(gate_up)};
    device::require_launched(table.swiglu_backward(rows, num_rows(dy), stream_of(gate_up)));
  });
}

void rotate_(const at::Tensor& x, const Rotation& rotation, Turn turn) {
  const at::Tensor &cos = rotation.cos, &sin = rotation.sin;
  const at::ScalarType angles = math_type(x);
  check(x.dim() == 3 && cos.dim() == 2 && cos.size(0) == x.size(1) && cos.sizes() == sin.sizes() &&
            cos.scalar_type() == angles && sin.scalar_type() == angles && cos.is_contiguous() && sin.is_contiguous() &&
            cos.device() == x.device() && sin.device() == x.device(),
        "a rotation has one angle for each position and pair, in the precision and place of the computation");
  check(rotation.heads * 2 * cos.size(1) <= x.size(2), "the heads to turn are part of a row");
  with_table(x, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const RotaryRows<T> rows{write<T>(x),  x.size(2),    rotation.heads, cos.size(1),
                             read<M>(cos), read<M>(sin), x.size(1),      turn == Turn::Forward ? M(1) : M(-1)};
    device::require_launched(table.rotary(rows, num_rows(x), stream_of(x)));
  });
}

}  // namespace braid::kernels::on_device
