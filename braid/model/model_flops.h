// The number of floating-point operations that a model needs.
#pragma once

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"

namespace braid::model {

// Returns the floating-point operations of forward and backward for one token of a full sequence. A multiply-add counts
// as two:
//
//   6 x weights of the matrix products                   blocks and output head, without the embedding lookup
//   + 12 x layers x heads x head width x tokens seen     queries with keys, and probabilities with values
//
// With experts, the weights are those of the router and of the experts that a token goes to. Tokens seen is
// Op::tokens_seen. In a causal family a token attends only to its past, half of the sequence on average. Without a
// window, the second term is therefore half of the 12 x layers x width x context of Chowdhery et al., "PaLM" (2022),
// appendix B. The output head is counted with the true vocabulary, as in Narayanan et al., "Efficient
// Large-Scale Language Model Training" (2021), section 5.1. Norms, activations, the softmax and the optimizer are not
// counted. A weight that is frozen saves a third of its part, and so does an input before which nothing is trained.
// `picked`: the fraction of the tokens whose logits a masked family computes; for a run, spec::model_flops_per_token().
// REQUIRES: `spec.vocab` is resolved (> 0).
double model_flops_per_token(const ModelSpec& spec, double picked = 1);
// Returns the same for a graph, which may have frozen parameters, with the extents of one token.
double model_flops_per_token(const ModelGraph& graph, const Extents& of_token);

// Returns the model-FLOP utilisation: the quotient of model operations per second and the peak's. Returns NaN if the
// peak is unknown (not > 0).
double model_flop_utilisation(double flops, double peak_flops);

}  // namespace braid::model
