// Dropout's mask and its product with a tensor on CPUs, computed on raw elements.
#include "braid/nn/kernels/masked.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>

#include "braid/nn/kernels/parallel_rows.h"
#include "braid/nn/kernels/team_activation.h"

namespace braid::kernels {

at::Tensor keep_mask(const at::Tensor& like, const HostMaskDraw& draw) {
  check(like.is_cpu(), "a mask on the host is a CPU tensor's");
  constexpr int64_t kDrawn = 4;  // elements per draw
  at::Tensor mask = at::empty(like.sizes(), like.options().dtype(at::kBool));
  const auto threshold = static_cast<uint64_t>(std::llround(draw.keep * 0x1p32));
  for_each_stretch(like.sizes(), draw.tokens, [&](const TokenStretch& part) {
    const KeepMask call{&draw.key,  draw.place, threshold, mask.mutable_data_ptr<bool>() + part.local,
                        part.count, part.begin};
    parallel_rows(call.draws(), kDrawn, [&](RowRange draws) {
      for (int64_t i = draws.begin; i < draws.end; ++i) draw_keep_mask(call, i);
    });
  });
  return mask;
}

at::Tensor masked(const at::Tensor& x, const at::Tensor& mask, double scale) {
  check(mask.sizes() == x.sizes() && mask.is_contiguous(), "a mask has its tensor's shape");
  at::Tensor y = at::empty_like(x);
  const bool* const keeps = mask.const_data_ptr<bool>();
  with_type(x, [&](auto zero) {
    using T = decltype(zero);
    using M = MathOf<T>;
    const T* const from = read<T>(x);
    T* const to = write<T>(y);
    const M kept = static_cast<M>(scale);
    parallel_rows(x.numel(), 1, [&](RowRange range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        to[i] = static_cast<T>(static_cast<M>(from[i]) * (keeps[i] ? kept : M{0}));
      }
    });
  });
  return y;
}

}  // namespace braid::kernels
