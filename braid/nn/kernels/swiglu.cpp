// Tensors to rows.
#include "braid/nn/kernels/swiglu.h"

#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"

namespace braid::kernels {

at::Tensor swiglu(const at::Tensor& gate_up) {
  if (on_device::takes(gate_up)) return on_device::swiglu(gate_up);
  if (!gate_up.is_cpu()) return composed::swiglu(gate_up);
  check(gate_up.size(-1) % 2 == 0, "gate and up are halves of a row");
  std::vector<int64_t> sizes = gate_up.sizes().vec();
  sizes.back() /= 2;
  at::Tensor y = at::empty(sizes, gate_up.options());
  with_type(gate_up, [&](auto zero) {
    using T = decltype(zero);
    const SwigluForwardRows<T> rows{sizes.back(), read<T>(gate_up), write<T>(y)};
    parallel_rows(num_rows(y), rows.width, [&](RowRange range) { row_kernels<T>().swiglu_forward(rows, range); });
  });
  return y;
}

void swiglu_backward_(const at::Tensor& gate_up, const at::Tensor& dy) {
  if (on_device::takes(gate_up)) return on_device::swiglu_backward_(gate_up, dy);
  if (!gate_up.is_cpu()) return composed::swiglu_backward_(gate_up, dy);
  check(gate_up.size(-1) == 2 * dy.size(-1) && gate_up.numel() == 2 * dy.numel(), "gate and up are halves of a row");
  check(gate_up.scalar_type() == dy.scalar_type() && dy.is_contiguous(), "dy is like y");
  with_type(gate_up, [&](auto zero) {
    using T = decltype(zero);
    const SwigluBackwardRows<T> rows{dy.size(-1), read<T>(dy), read<T>(gate_up), write<T>(gate_up)};
    parallel_rows(num_rows(dy), rows.width, [&](RowRange range) { row_kernels<T>().swiglu_backward(rows, range); });
  });
}

}  // namespace braid::kernels
