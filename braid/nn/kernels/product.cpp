// Matrix products. They choose between LibTorch's product, braid's bfloat16 kernel and float32 products of widened
// panels.
#include "braid/nn/kernels/product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/layout/product_panels.h"
#include "braid/nn/kernels/generation_rows.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/part_product.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/product_bf16.h"

namespace braid::kernels {
namespace {

constexpr int64_t kGrainWeights = 1 << 16;  // elements of the weight that justify a thread

}  // namespace

at::Tensor row_product(const at::Tensor& x, const at::Tensor& weight_oi, const at::Tensor& bias_o) {
  const int64_t inputs = weight_oi.size(1), outputs = weight_oi.size(0);
  check(x.size(-1) == inputs && weight_oi.is_contiguous() && weight_oi.scalar_type() == x.scalar_type(),
        "rows and weight of one product");
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = outputs;
  at::Tensor y = at::empty(sizes, x.options());
  with_type(x, [&](auto zero) {
    using T = decltype(zero);
    const RowProduct<T> product{num_rows(x),        inputs,          outputs,    read<T>(x),
                                read<T>(weight_oi), read<T>(bias_o), write<T>(y)};
    const int64_t grain = std::max<int64_t>(4, kGrainWeights / std::max<int64_t>(1, inputs));
    at::parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
      best_kernels<GenerationKernels<T>>().product(product, {begin, end});
    });
  });
  return y;
}

namespace {

// Returns x with contiguous rows, which the kernel needs. A gradient that autograd has expanded from a scalar has none.
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

using layout::kPanelElements;

at::Tensor widened(const at::Tensor& x) { return x.to(at::kFloat); }

// Computes the product by panels of columns of b. Each panel gives whole columns of out.
void product_by_columns(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const int64_t columns = std::max<int64_t>(1, kPanelElements / std::max<int64_t>(1, b.size(0)));
  const at::Tensor wide_a = widened(a);
  for (int64_t begin = 0; begin < b.size(1); begin += columns) {
    const int64_t count = std::min(columns, b.size(1) - begin);
    const at::Tensor panel = widened(b.narrow(1, begin, count));
    const at::Tensor y =
        bias.defined() ? at::addmm(widened(bias.narrow(0, begin, count)), wide_a, panel) : at::mm(wide_a, panel);
    out.narrow(1, begin, count).copy_(y);
  }
}

// Computes the product by panels of rows of b. Each panel adds to all of out, which is summed in float32.
void product_by_rows(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  const int64_t rows = std::max<int64_t>(1, kPanelElements / std::max<int64_t>(1, b.size(1)));
  at::Tensor sum = at::empty(out.sizes(), out.options().dtype(at::kFloat));
  for (int64_t begin = 0; begin < b.size(0); begin += rows) {
    const int64_t count = std::min(rows, b.size(0) - begin);
    sum.addmm_(widened(a.narrow(1, begin, count)), widened(b.narrow(0, begin, count)), begin == 0 ? 0 : 1, 1);
  }
  out.copy_(sum);
}

}  // namespace

bool multiplies_on_cpu(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || (type == at::kBFloat16 && has_product_bf16());
}

void product_out(at::Tensor out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  if (!out.is_cpu() || multiplies_on_cpu(out.scalar_type())) {
    bias.defined() ? at::addmm_out(out, bias, a, b) : at::mm_out(out, a, b);
  } else if (bias.defined() || b.size(1) >= b.size(0)) {
    product_by_columns(out, a, b, bias);
  } else {
    product_by_rows(out, a, b);
  }
}

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

void accumulate_product_in_order(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni,
                                 double beta) {
  const bool has_order = dy_no.scalar_type() == at::kBFloat16 && dy_no.size(0) > 0 && has_product_bf16();
  if (has_order) return accumulate_product(slot_oi, dy_no, x_ni, beta);
  product_in_parts(slot_oi, dy_no.t(), x_ni, {}, {}, beta);
}

}  // namespace braid::kernels
