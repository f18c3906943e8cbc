// The end of a language model: logits over a vocabulary split over the tensor axis, and their loss.
// It knows no norm, which comes before it, and no family.
#pragma once

#include "braid/nn/cross_entropy.h"
#include "braid/nn/parallel_linear.h"

namespace braid {

class LanguageHead {
 public:
  struct Options {
    ParamUse weight;    // this rank's rows, [v/n, c]
    int64_t vocab = 0;  // of the whole model, without padding
  };
  LanguageHead(const Options& options, const RankContext& rank)
      : linear_({options.weight}, rank),
        range_(vocab_range(options.vocab, options.weight.param->data.size(0), rank.tensor)),
        rank_(rank) {}
  // The mean loss over b x t, or without targets this rank's logits, b x t x v/n, -inf in the padding.
  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) const;

 private:
  ColumnParallelLinear linear_;
  VocabRange range_;
  RankContext rank_;
};

}  // namespace braid
