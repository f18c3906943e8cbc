// The work of a model's parts on one rank for one microbatch: matrix products, passes over memory, communication.
//
// n tokens of the rank, e bytes of an element, t tensor ranks, h width, q = heads x head width, kv likewise of the
// keys, f the feed-forward branch's features. Products on the way forward: queries, keys and values h x (q + 2 kv) / t,
// output q/t x h, up h x f/t (gated: twice), down f/t x h; each again for the gradient of its input, and of its weight,
// which is added in float32. Attention, in the set Megatron: scores and weighted values, 2 n s q / t operations each,
// with n s heads / t scores in memory (Korthikanti et al. 2022, section 4.1), twice that in backward; in the set Braid
// one pass over the tokens seen, and five products for two in backward (Dao et al., "FlashAttention", 2022).
//
// Passes over memory, elements read and written for each token: a norm 2h forward and 3h backward, a sum with the
// residual 3h and 3h, dropout's mask a byte, the activation 2f (gated 3f) and 3f (5f), heads gathered 2q each way,
// rotary positions 2 (q + kv) each way, gradients of biases what they sum; softmax and its dropout, where scores are in
// memory, 2 + 2 each score forward, 3 + 2 backward. With E experts of which k are a token's own: the router's product
// h x E, its softmax 2E and 3E; each expert's products have n k e / E rows, where e expert ranks route to each other as
// many tokens as each has, all experts equally many; tokens are copied to rows 2 k h and summed back (k + 1) h, and in
// backward (2 k + 1) h and (k + 1) h; e n k h bytes go to the experts and come back, by an all-to-all each. With
// sequence parallelism norms, residuals and their dropout are shared by the tensor ranks.
#pragma once

#include <vector>

#include "braid/plan/device_rates.h"
#include "braid/plan/run_layout.h"

namespace braid::plan {

struct PassWork {
  std::vector<Product> products;
  Product attention;          // fused; none where it has no operations
  double streamed_bytes = 0;  // through tensors of a microbatch's hidden state, about
  double reduced_bytes = 0;   // by an all-reduce of tensor ranks, or as a gather and a scattered sum: as long
  int num_reductions = 0;     // all alike
  double context_bytes = 0;   // gathered from context ranks
  int num_gathers = 0;
  double routed_bytes = 0;  // to and from experts by an all-to-all of expert ranks
  int num_routes = 0;
};

// The passes of one part of the model.
struct PartWork {
  PassWork forward, input_grad, weight_grad;
  PassWork selected;  // recomputed under selective recompute
  PassWork full;      // recomputed under full recompute: of blocks alone
};

// The two halves of a block.
PartWork attention_work(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas);
PartWork feed_work(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas);
PartWork embedding_work(const RunSpec& spec, const RunLayout& layout);
// The last norm, the product with the vocabulary and the cross-entropy.
PartWork head_work(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas);

// Bytes of an element of weights and activations.
double element_bytes(DType type);

}  // namespace braid::plan
