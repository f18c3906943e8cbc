// Common code of calls through the CUDA table of nn: the type, the stream, and memory for sums over parts of the rows.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "braid/base/errors.h"
#include "braid/device/cuda_services.h"
#include "braid/nn/kernels/cuda_table.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"

namespace braid::kernels::on_device {

template <class Body>
void with_table(const at::Tensor& x, const Body& body) {
  check(takes(x) && x.is_contiguous(), "device kernels take contiguous CUDA tensors");
  const NnCudaTable& table = *device::cuda_table<NnCudaTable>();
  switch (x.scalar_type()) {
    case at::kFloat:
      return body(table.f32, float{});
    case at::kDouble:
      return body(table.f64, double{});
    case at::kBFloat16:
      return body(table.bf16, c10::BFloat16{});
    case at::kHalf:
      return body(table.f16, c10::Half{});
    default:
      check(false, "the fused kernels compute on floating-point tensors");
  }
}

inline void* stream_of(const at::Tensor& x) { return device::cuda_stream(x.get_device()); }
inline at::TensorOptions math_options(const at::Tensor& x) { return x.options().dtype(math_type(x)); }

// The memory for `num_sums` x c sums over the rows of x: the sums of the parts, and the totals.
struct Sums {
  RowParts shape;
  at::Tensor parts, to;

  Sums(const at::Tensor& x, int64_t num_sums, RowParts of) : shape(of) {
    parts = at::empty({shape.num, num_sums, x.size(-1)}, math_options(x));
    to = at::empty({num_sums, x.size(-1)}, parts.options());
  }
  template <class M>
  PartSums<M> call(M keep = 0) const {
    return {shape, write<M>(parts), write<M>(to), keep};
  }
};

}  // namespace braid::kernels::on_device
