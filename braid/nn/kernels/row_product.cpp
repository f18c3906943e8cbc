// Threads share the outputs.
#include "braid/nn/kernels/row_product.h"

#include "braid/nn/kernels/generation_rows.h"
#include "braid/nn/kernels/parallel_rows.h"

namespace braid::kernels {
namespace {

constexpr int64_t kGrainWeights = 1 << 16;  // elements that are worth a thread

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
      generation_kernels<T>().product(product, {begin, end});
    });
  });
  return y;
}

}  // namespace braid::kernels
