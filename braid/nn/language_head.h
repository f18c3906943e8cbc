// The end of a language model: logits over a vocabulary split over the tensor axis, and their loss.
//
// The loss has two ways, told apart by the bytes of the logits of a whole microbatch on this rank:
//
//              up to `logit_bytes`                     above: in chunks of rows of at most `logit_bytes`
//   forward    logits, loss                            per chunk: logits, loss, dlogits, dX, dW into the slot
//   backward   dlogits in the logits' buffer, dX       hands out dX; check() fails unless it is seeded as announced
//   queue      dW from that buffer                     nothing
//
// So never more than one chunk of logits is held. In chunks the weight's slot is opened and closed once in forward,
// which counts as the contribution of (weight, use, micro): the step must have begun, on_ready may fire there, and a
// forward with gradients runs once per microbatch. The alternative, an entry on the queue that holds the finished
// gradient, would keep a [v/n, c] buffer for every microbatch in flight.
#pragma once

#include "braid/nn/cross_entropy.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {

class LanguageHead {
 public:
  struct Options {
    ParamUse weight;    // this rank's rows, [v/n, c]
    int64_t vocab = 0;  // of the whole model, without padding
    int64_t logit_bytes = int64_t{64} << 20;
  };
  LanguageHead(const Options& options, const RankContext& rank)
      : options_(options),
        range_(vocab_range(options.vocab, options.weight.param->data.size(0), rank.tensor)),
        rank_(rank) {}
  // The mean loss over b x t, of float32 (float64 for float64), the same on all ranks; or without targets this rank's
  // logits, b x t x v/n, -inf in the padding. With microbatch.cache the logits are of the last token of each of its s
  // stretches, s x 1 x v/n. With fewer targets than tokens the loss is of the last tokens. x_btc: the same on all
  // ranks; backward sums its gradient over them. Backward runs once. In chunks it must be seeded with
  // microbatch.loss_gradient (not looked at on devices, where looking would wait for the device).
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;

 private:
  at::Tensor logits(const at::Tensor& x_btc, const Microbatch& microbatch) const;

  Options options_;
  VocabRange range_;
  RankContext rank_;
};

}  // namespace braid::nn
