// A product without bias, then either of two ends.
#include "braid/nn/language_head.h"

#include <limits>

namespace braid {

at::Tensor LanguageHead::forward(const at::Tensor& x_btc, const Microbatch& microbatch) const {
  const at::Tensor logits_btv = linear_.forward(x_btc, microbatch);
  if (microbatch.targets_bt.defined()) {
    return parallel_cross_entropy_(logits_btv, microbatch.targets_bt, range_, rank_.tensor);
  }
  const int64_t padding = logits_btv.size(-1) - range_.real;
  logits_btv.narrow(-1, range_.real, padding).fill_(-std::numeric_limits<double>::infinity());
  return logits_btv;
}

}  // namespace braid
