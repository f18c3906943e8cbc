// Dropout with an explicit mask that is drawn from a key. LibTorch's own dropout draws from the default generator.
#include "braid/nn/dropout.h"

#include <ATen/ops/native_dropout_backward.h>

#include "braid/nn/kept.h"
#include "braid/nn/kernels/masked.h"
#include "braid/nn/kernels/on_device.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr uint64_t kSitesPerBlock = 16, kSites = uint64_t{1} << 26;

// Returns a number of the dropout's own. The first sites of all blocks come before their further ones.
uint64_t place_of(const Dropout::Options& options) {
  const uint64_t site = options.site, first = options.block * kSitesPerBlock;
  return site / kSitesPerBlock * kSites + first + site % kSitesPerBlock;
}

// Returns x * mask * scale.
at::Tensor product(const at::Tensor& x, const at::Tensor& mask, double scale) {
  return x.is_cpu() ? kernels::masked(x.contiguous(), mask, scale) : at::native_dropout_backward(x, mask, scale);
}

struct Masked : Function<Masked> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& mask, double scale) {
    keep(ctx, scale);
    ctx->save_for_backward({mask});
    return product(x, mask, scale);
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    return {product(grads[0], ctx->get_saved_variables()[0], kept<double>(ctx)), {}, {}};
  }
};

}  // namespace

at::Tensor Dropout::forward(const at::Tensor& x, const Microbatch& microbatch) const {
  if (!active(microbatch)) return x;
  const double keep_probability = 1 - options_.probability;
  const uint64_t place = place_of(options_);
  if (kernels::on_device::takes(x)) {
    const kernels::on_device::MaskDraw draw{microbatch.dropout_key_1, place, keep_probability, options_.tokens};
    return Masked::apply(x, kernels::on_device::keep_mask(x, draw), 1 / keep_probability);
  }
  const at::Tensor mask = kernels::keep_mask(x, {microbatch.dropout_key, place, keep_probability, options_.tokens});
  return Masked::apply(x, mask, 1 / keep_probability);
}

}  // namespace braid::nn
