// The loss, weight gradients and dropout's mask on a device. Tensors are passed to kernels through the table of
// libbraid_cuda.so.
#include <ATen/ops/sort.h>

#include <cmath>

#include "braid/nn/kernels/table_call.h"

namespace braid::kernels::on_device {
namespace {

// Returns x with contiguous rows, which cuBLAS needs. A gradient that autograd has expanded from a scalar has none.
at::Tensor with_rows(const at::Tensor& x) { return x.stride(1) == 1 || x.size(1) == 1 ? x : x.contiguous(); }

// Returns the distance between rows. If there is only one row, LibTorch's stride may be smaller than BLAS accepts.
int64_t row_stride(const at::Tensor& x) { return std::max<int64_t>({1, x.size(1), x.size(0) > 1 ? x.stride(0) : 0}); }

}  // namespace

SoftmaxSums softmax_sums(const at::Tensor& logits_nv, int64_t real, const at::Tensor& column_n) {
  const int64_t n = logits_nv.size(0), width = logits_nv.size(1);
  const at::Tensor sums_3n = at::empty({3, n}, math_options(logits_nv)), column = column_n.contiguous();
  const SoftmaxSums sums{sums_3n.select(0, 0), sums_3n.select(0, 1), sums_3n.select(0, 2)};
  with_table(logits_nv, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const LogitRows<const T> logits{read<T>(logits_nv), width, real, read<int64_t>(column)};
    const SoftmaxSumRows<T> rows{logits, write<M>(sums.max_n), write<M>(sums.sum_n), write<M>(sums.target_n)};
    device::require_launched(table.softmax_sums(rows, n, stream_of(logits_nv)));
  });
  return sums;
}

void softmax_gradient_(const at::Tensor& logits_nv, const SoftmaxGradient& of) {
  const int64_t n = logits_nv.size(0), width = logits_nv.size(1);
  const at::Tensor max_n = of.max_n.contiguous(), scale_n = of.step.div(of.sum_n).contiguous();
  const at::Tensor column = of.column_n.contiguous(), step = of.step.contiguous();
  with_table(logits_nv, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const LogitRows<T> logits{write<T>(logits_nv), width, of.real, read<int64_t>(column)};
    const TeamSoftmaxGradient<T> rows{logits, read<M>(max_n), read<M>(scale_n), read<M>(step)};
    device::require_launched(table.softmax_gradient(rows, n, stream_of(logits_nv)));
  });
}

void accumulate_row_sum(const at::Tensor& sums_c, const at::Tensor& x_nc, double beta) {
  const at::Tensor x = x_nc.contiguous();
  Sums sums(x, 1, column_parts(x.size(0), x.size(1)));
  check(sums_c.scalar_type() == sums.to.scalar_type(), "sums are of the type that is computed with");
  sums.to = sums_c;
  with_table(x, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const RowMatrix<T> rows{read<T>(x), x.size(1)};
    device::require_launched(table.row_sum(rows, sums.call<M>(static_cast<M>(beta)), stream_of(x)));
  });
}

void add_rows_(const at::Tensor& table_vc, const at::Tensor& x_nc, const at::Tensor& rows_n) {
  check(table_vc.is_contiguous() && table_vc.size(1) == x_nc.size(1), "rows as wide as the table's");
  check(table_vc.scalar_type() == math_type(x_nc), "the table is of the type that is computed with");
  const at::Tensor x = x_nc.contiguous();
  const auto [rows, order] = at::sort(rows_n, /*stable=*/std::optional<bool>(true), /*dim=*/0, /*descending=*/false);
  with_table(x, [&](const auto& table, auto zero) {
    using T = decltype(zero);
    const SortedRows<T> call{
        read<T>(x), write<MathOf<T>>(table_vc), read<int64_t>(rows), read<int64_t>(order), x.size(0), x.size(1)};
    device::require_launched(table.add_rows(call, stream_of(x)));
  });
}

void accumulate_product(const at::Tensor& slot_oi, const at::Tensor& dy_no, const at::Tensor& x_ni, double beta) {
  const at::Tensor dy = with_rows(dy_no), x = with_rows(x_ni);
  const bool is_half = dy.scalar_type() == at::kHalf;
  check((is_half || dy.scalar_type() == at::kBFloat16) && slot_oi.scalar_type() == at::kFloat,
        "products of 16 bits are added up in float32");
  const WeightProduct call{is_half ? NarrowType::Float16 : NarrowType::Bfloat16,
                           dy.const_data_ptr(),
                           x.const_data_ptr(),
                           row_stride(dy),
                           row_stride(x),
                           dy.size(0),
                           dy.size(1),
                           x.size(1),
                           static_cast<float>(beta),
                           slot_oi.mutable_data_ptr<float>()};
  device::require_launched(device::cuda_table<NnCudaTable>()->product(call));
}

at::Tensor keep_mask(const at::Tensor& like, const MaskDraw& draw) {
  check(takes(like) && draw.key_1.numel() == 1 && draw.key_1.scalar_type() == at::kLong &&
            draw.key_1.device() == like.device(),
        "a mask is drawn on a CUDA device with one key there");
  const at::Tensor mask = at::empty(like.sizes(), like.options().dtype(at::kBool));
  const auto threshold = static_cast<uint64_t>(std::llround(draw.keep * 0x1p32));
  const auto* const key = reinterpret_cast<const uint64_t*>(draw.key_1.const_data_ptr<int64_t>());
  for_each_stretch(like.sizes(), draw.tokens, [&](const TokenStretch& part) {
    const KeepMask call{key, draw.place, threshold, mask.mutable_data_ptr<bool>() + part.local, part.count, part.begin};
    device::require_launched(device::cuda_table<NnCudaTable>()->keep_mask(call, stream_of(like)));
  });
  return mask;
}

}  // namespace braid::kernels::on_device
