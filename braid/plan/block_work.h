// The work of a model's parts on one rank for one microbatch: matrix products, memory-bound kernels, communication.
//
// Symbols: n tokens of a microbatch on the rank, s sequence length, e bytes of an element, t tensor ranks, h width, q =
// heads x head width, kv the same for keys, f width of the feed-forward layer (MLP).
//
// Matrix products of the forward pass:
//
//   queries, keys and values   h x (q + 2 kv)/t
//   attention's output         q/t x h
//   up                         h x f/t, twice if gated
//   down                       f/t x h
//
// Backward has two more products for each of them: one for the gradient of its input, one for the gradient of its
// weight. Weight gradients are accumulated in float32. Frozen parameters save those products that nothing needs
// (layout/account.h).
//
// Attention has one of two forms (stores_scores() in formula_set.h):
//
//   stored scores   Two products, scores and weighted values, have 2 n s q / t operations each. The n s heads / t
//                   scores are in memory. Backward has twice the operations (Korthikanti et al. 2022, section 4.1).
//   fused           One kernel covers the tokens that the causal mask leaves visible. Backward has five products
//                   instead of two (Dao et al., "FlashAttention", 2022).
//
// Elements that memory-bound kernels read and write, for each token or for each stored score:
//
//                                      forward       backward
//   norm                               2 h           3 h
//   norms of heads                     2 (q + kv)    3 (q + kv)
//   residual addition                  3 h           3 h
//   dropout                            mask          2 h + mask
//   activation                         2 f           3 f
//   gated activation                   3 f           5 f
//   gather of heads                    2 q           2 q
//   rotary positions                   2 (q + kv)    2 (q + kv)
//   biases                             -             their gradients
//   softmax, for each score            2             3
//   dropout of scores, for each score  2 + mask      2 + mask
//   softmax of the router              2 E           3 E
//   dispatch of tokens to experts      2 k h         (2 k + 1) h
//   combination of experts' outputs    (k + 1) h     (k + 1) h
//
//   rows of heads before and after     8 (q + kv)    8 (q + kv)
//     both exchanges of Ulysses
//   merged blocks and moved halves     7 b q + 4 q   3 b (q + 2 kv) + 4 q
//     of a ring of r ranks               + 2 kv        + 2 (4 r - 1) kv
//
// A query of a ring meets b = r + 1/2 blocks. A dropout mask has one byte for each element.
//
// There are E experts on x expert ranks, and each token uses k of them. The router's product is h x E. The load is
// assumed to be balanced, so each product of an expert has n k x / E rows. One all-to-all sends e n k h bytes to the
// experts, and another brings the outputs back.
//
// Under sequence parallelism the tensor ranks split the work of norms, residual additions and their dropout.
#pragma once

#include <vector>

#include "braid/plan/device_rates.h"
#include "braid/plan/run_layout.h"

namespace braid::plan {

struct PassWork {
  std::vector<Product> products;
  Product attention;           // fused attention; none if it has no operations
  double streamed_bytes = 0;   // bytes of memory-bound kernels, in tensors of about the hidden state's size
  double reduced_bytes = 0;    // bytes of each all-reduce over tensor ranks (or all-gather + reduce-scatter)
  int num_reductions = 0;      // number of these all-reduces
  double gathered_bytes = 0;   // bytes of each further all-gather over tensor ranks, under sequence parallelism
  int gathered_again = 0;      // number of these all-gathers
  double context_bytes = 0;    // bytes of each all-gather over context ranks
  int num_gathers = 0;         // number of these all-gathers
  double exchanged_bytes = 0;  // bytes of each all-to-all over context ranks
  int num_exchanges = 0;       // number of these all-to-alls
  double routed_bytes = 0;     // bytes of each all-to-all over expert ranks
  int num_routes = 0;          // number of these all-to-alls
};

// The work of each pass of one part of the model.
struct PartWork {
  PassWork forward, input_grad, weight_grad;
  PassWork selected;  // recomputed under selective recompute
  PassWork full;      // recomputed under full recompute; only blocks have it
};

// Returns the work of one of ModelAccount::parts.
PartWork part_work(const RunSpec& spec, const RunLayout& layout, size_t part, FormulaSet formulas);
PartWork embedding_work(const RunSpec& spec, const RunLayout& layout);
// Returns the work of the last norm, the output projection to the vocabulary and the cross-entropy.
PartWork head_work(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas);

// Returns the bytes of one element of weights or activations.
double element_bytes(DType type);

}  // namespace braid::plan
