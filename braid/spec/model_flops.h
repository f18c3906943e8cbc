// The arithmetic that a model asks for.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Floating-point operations (a multiply-add is two) of forward and backward for one token of a full sequence:
//
//   6 x (weights of all matrix products: the blocks' and the output head's, not the embedding lookup; of experts those
//        of the token's own, and the router's)
//   + 12 x layers x heads x head width x tokens seen    queries with keys, and probabilities with values
//
// The second term is half of the 12 x layers x width x context of Chowdhery et al., "PaLM" (2022), appendix B: a token
// sees its past alone, half of the sequence on average, and of that what model.window leaves. The output head is
// counted with the true vocabulary, as in Narayanan et al., "Efficient Large-Scale Language Model Training" (2021),
// section 5.1. Norms, activations, the softmax and the optimizer are not counted. `spec.vocab` is resolved (> 0).
double model_flops_per_token(const ModelSpec& spec);

// Returns the model-FLOP utilisation: FLOPs of the model per token x tokens per second over the ranks' peak. NaN if
// `peak_flops` (of all ranks together, per second) is unknown (not > 0).
double model_flop_utilisation(const ModelSpec& spec, double tokens_per_second, double peak_flops);

}  // namespace braid::spec
