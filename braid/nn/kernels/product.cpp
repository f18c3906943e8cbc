// Picks who computes dy^T x.
#include "braid/nn/kernels/product.h"

#include <ATen/ops/addmm.h>

#include "braid/base/errors.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/product_bf16.h"

namespace braid::kernels {
namespace {

// The kernel reads rows; a gradient that autograd expanded from a scalar has none.
at::Tensor with_rows(const at::Tensor& x) { return x.stride(1) == 1 || x.size(1) == 1 ? x : x.contiguous(); }

const uint16_t* bits(const at::Tensor& x) { return static_cast<const uint16_t*>(x.const_data_ptr()); }

void product_on_bf16(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta) {
  const at::Tensor dy = with_rows(dy_no), x = with_rows(x_ni);
  ProductBf16 call;
  call.dy = {bits(dy), dy.stride(0)};
  call.x = {bits(x), x.stride(0)};
  call.n = dy.size(0);
  call.o = dy.size(1);
  call.i = x.size(1);
  call.beta = beta;
  call.out = slot_oi.mutable_data_ptr<float>();
  product_bf16(call);
}

}  // namespace

void accumulate_product(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta) {
  const at::ScalarType sums = slot_oi.scalar_type();
  check(beta == 0 || beta == 1, "a slot is overwritten or added to");
  check(slot_oi.is_contiguous(), "a slot is contiguous");
  check(dy_no.scalar_type() == x_ni.scalar_type(), "both operands of a weight gradient have one type");
  at::Tensor slot = slot_oi;
  if (dy_no.scalar_type() == sums) {
    slot.addmm_(dy_no.t(), x_ni, beta, 1);
  } else if (on_device::takes(slot)) {
    on_device::accumulate_product(slot, dy_no, x_ni, beta);
  } else if (slot.is_cuda()) {
    at::addmm_out(slot, slot, dy_no.t(), x_ni, sums, beta, 1);
  } else if (dy_no.scalar_type() == at::kBFloat16 && sums == at::kFloat && dy_no.size(0) > 0 && has_product_bf16()) {
    product_on_bf16(slot, dy_no, x_ni, beta);
  } else {
    slot.addmm_(dy_no.to(sums).t(), x_ni.to(sums), beta, 1);
  }
}

}  // namespace braid::kernels
