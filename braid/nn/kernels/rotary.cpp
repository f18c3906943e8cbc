// The rotation of heads. On CPUs, tensors are passed to the row kernels as raw rows.
#include "braid/nn/kernels/rotary.h"

#include "braid/nn/kernels/composed.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/processor.h"

namespace braid::kernels {

void rotate_(const at::Tensor& x, const Rotation& rotation, Turn turn) {
  if (on_device::takes(x)) return on_device::rotate_(x, rotation, turn);
  if (!x.is_cpu()) return composed::rotate_(x, rotation, turn);
  const at::Tensor &cos = rotation.cos, &sin = rotation.sin;
  check(x.dim() == 3 && cos.dim() == 2 && cos.size(0) == x.size(1) && cos.sizes() == sin.sizes(),
        "a rotation has one angle for each position and pair");
  check(cos.scalar_type() == math_type(x) && sin.scalar_type() == math_type(x) && cos.is_contiguous() &&
            sin.is_contiguous(),
        "angles have the precision of the computation");
  const int64_t turned = rotation.heads * 2 * cos.size(1);
  check(turned <= x.size(2), "the heads to turn are part of a row");
  with_type(x, [&](auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const RotaryRows<T> rows{write<T>(x),  x.size(2),    rotation.heads, cos.size(1),
                             read<M>(cos), read<M>(sin), x.size(1),      turn == Turn::Forward ? M(1) : M(-1)};
    parallel_rows(num_rows(x), turned, [&](RowRange range) { best_kernels<RowKernels<T>>().rotary(rows, range); });
  });
}

}  // namespace braid::kernels
