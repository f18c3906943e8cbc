// The head of a language model: logits over a vocabulary split over the tensor axis, and their loss.
//
// There are two ways to compute the loss. The choice depends on the bytes of this rank's logits of a whole microbatch:
//
//              up to `logit_bytes`                     above: in chunks of rows of at most `logit_bytes`
//   forward    logits, loss                            per chunk: logits, loss, dlogits, dX, dW into the slot
//   backward   dlogits in the logits' buffer, dX       returns dX; check() fails if the seed is another one
//   queue      dW from that buffer                     nothing
//
// So at most one chunk of logits exists at a time. In chunks, forward opens and closes the weight's slot once, which
// counts as the contribution of (weight, use, micro). This has three consequences: the step must have begun, on_ready
// may be called in forward, and a forward with gradients runs once per microbatch. The alternative, a queue entry that
// holds the finished gradient, would keep a [v/n, c] buffer for every microbatch in flight.
#pragma once

#include "braid/layout/logits.h"
#include "braid/nn/cross_entropy.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {

class LanguageHead {
 public:
  struct Options {
    ParamUse weight;    // this rank's rows, [v/n, c]
    int64_t vocab = 0;  // entries of the whole model's vocabulary, without padding
    int64_t logit_bytes = layout::kMostLogitBytes;
    const param::Parameter* bias = nullptr;  // of the logits, [v/n]; null: none
    double cap = 0;                          // logits x become cap tanh(x / cap); 0: they stay
    bool sums_gradient = false;              // as LinearCall has it
  };
  LanguageHead(const Options& options, const RankContext& rank)
      : options_(options),
        range_(vocab_range(options.vocab, options.weight.param->data.size(0), rank.tensor)),
        rank_(rank) {}
  // Returns the mean loss over b x t (or as Microbatch::num_targets has it), float32 (float64 for float64), the same on
  // all ranks. Without targets it returns this rank's logits, b x t x v/n, with -inf in the padding; with
  // microbatch.cache only those of the last token of each of its s stretches, s x 1 x v/n. With fewer targets than
  // tokens, the loss is that of the last tokens. x_btc: the same on all ranks; its gradient is this rank's part of a
  // sum (copy_to()). Backward runs once. In chunks, backward must be seeded with microbatch.loss_gradient. This is not
  // checked on devices, because reading the seed would wait for the device.
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;
  // Returns what forward() returns without targets.
  at::Tensor logits(const at::Tensor& x_btc, const Microbatch& microbatch) const;

 private:
  Options options_;
  VocabRange range_;
  RankContext rank_;
};

}  // namespace braid::nn
