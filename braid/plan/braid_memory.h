// Activations of braid's own blocks, tensor by tensor, as their layers keep them.
#pragma once

#include "braid/plan/context_memory.h"
#include "braid/plan/data_exchange.h"
#include "braid/plan/product_copies.h"

namespace braid::plan {

// The bytes that a part of a block keeps of one microbatch, and those between its passes of input and weight
// gradients.
struct PartBytes {
  double everything, selected;
  double pending;
  double skipped;  // fraction of a block that is this part, if backward does not run its block; else 0
};

// The matrices of a layer that are trained.
struct TrainedMatrices {
  bool qkv = true, up = true, down = true;
};

// The bytes of a microbatch's tensors on a rank.
struct ActivationBytes {
  ActivationBytes(const RunSpec& spec, const RunLayout& layout);

  std::vector<PartBytes> parts;          // those of ModelAccount
  std::vector<TrainedMatrices> trained;  // by kind of layer
  double hidden, qkv, heads, inner, activated;
  double all_tokens;      // the hidden state of all tokens; `hidden` has a rank's between products
  double gathered = 0;    // the same under sequence parallelism, else 0
  double widened = 0;     // the same of all tokens in float32, if tensor ranks sum narrower types in it, else 0
  double exchanged = 0;   // in the order in which ranks exchange it, if sequences are not in that order
  double inner_sums = 0;  // partial sums of the gradient of the inner bias (nn/kernels/parallel_rows.h)
  ContextMemory context;
  double routed = 0, chosen = 0;         // tokens as rows of experts; the router's choice, for every expert
  double mask = 0;                       // mask of dropout: a byte for each element
  double embedding, embedding_selected;  // what the embedding keeps beside masks, of everything and of what is selected
  bool picks_rows, ends_in_norm;         // as layout::ModelAccount has them
  layout::ProductGradients of_logits;
  bool embedding_runs_backward;
  double head_everything, head_selected;  // what the head keeps beside the logits
  double logits;                          // all logits, or one chunk of them
  bool whole_logits;
  LayerProduct head_product;  // of the logits that are there at a time

  // Returns the bytes of the gradient of a product's output between the sum over tensor ranks and the product.
  double behind_product() const { return widened > 0 ? widened + all_tokens : gathered; }
  // Returns the bytes of the gradient of a product's input, with those of its sum over tensor ranks.
  double before_product() const;
};

// Returns the bytes that a stage keeps of one microbatch on a rank until its backward. With n tokens, e bytes of an
// element, t tensor ranks, h width, q = heads x head width, kv the same for keys, f width of the feed-forward layer
// (MLP), and g = 2 if that is gated, else 1, each block keeps what the rows of the op table say (model/op_table.h):
//
//   kept by                                        none               selective
//   both norms: their inputs                       2 e n h            2 e n h
//   the products after them: the norms' outputs    2 e n h            recomputed
//   attention: queries, keys and values            e n (q + 2 kv)/t   e n (q + 2 kv)/t
//   the product after it: attention's output       e n q/t            recomputed
//   the activation: its input                      e n g f/t          e n g f/t
//   the product after it: the activation's output  e n f/t            recomputed
//   both dropouts: their masks                     2 n h              2 n h
//   norms of heads: queries and keys               e n (q + kv)/t     e n (q + kv)/t
//   attention with a window: its runs' outputs     e n q/t            recomputed
//   float32 statistics of norms (2 for each token, 1 of RMSNorm and of each head's norm)
//                                                  4 n (2 (3 - g))    4 n (2 (3 - g))
//   float32 statistics of attention                4 n heads/t        recomputed
//   on context ranks: attention's output, as it is before it moves back to its tokens
//                                                  e n q/t            recomputed
//
// A stage without the head also keeps its output, e n h, until the output's gradient arrives. Dropout of the embedding
// keeps a mask, n h, and its norm, if it has one, e n h. The head keeps the inputs of its ops, the loss's input and the
// logits, of the picked tokens alone if it picks some: with one norm, 2 e n h. In chunks it keeps no logits, but the
// gradient of the loss's input.
//
// Under full recompute a stage keeps only the input of each segment, e n h, and the tensors of the head. The first
// segment of the stage with the embedding begins at the tokens, which are not counted here; computed again, it holds
// what the embedding keeps as well.
//
// With E experts, of which each token uses k, the activation's input and output are k times as large. The load is
// assumed to be balanced. Also kept are the tokens dispatched to the experts, e n k h, the outputs that come back, e n
// k h, and the router's float32 probabilities, 4 n E. Braid has no such layers yet: this is an estimate.
//
// Under sequence parallelism e n h, e n k h, 4 n E, the statistics of norms and the masks are divided by t.
//
// With frozen parameters, a product whose weight is frozen does not keep its input, and nothing is kept by ops and
// segments that have no backward.
double kept_bytes(const ActivationBytes& tensors, const StageLoad& load);

// Returns the bytes that a stage keeps of one microbatch between its input-gradient pass and a separate weight-gradient
// pass: each product's input and the gradient of its output, and sums of the gradients of norms and of the bias in
// front of the activation. The gradient of the up product's output overwrites the activation's input.
double pending_kept_bytes(const ActivationBytes& tensors, const StageLoad& load);

// Returns the most bytes that one pass of the stage holds in addition to the kept_bytes() of all microbatches in
// flight:
//
//   in the head                 the gradient of its input
//   in the last block           the gradient that comes from the head, and the gradient of the activation's output
//   in that block's attention   the gradients of its output, queries, keys and values
//   with dropout                the gradient after the mask is applied
//
// Under sequence parallelism there are also the gathered gradient behind a part's last product, and around its first
// one the gradient of the gathered input and that input, which is copied into order if there are several sequences.
// If backward does not run all layers, it may be what the forward of a layer holds that keeps nothing.
//
// Recomputed tensors are added to these (stage_chain.h). On CPUs products also copy 16-bit factors
// (product_copies.h).
double working_most_bytes(const PlannedRun& run, const ActivationBytes& tensors, const StageLoad& load);
// Returns those of a separate weight-gradient pass beyond what waits for it.
double weight_working_bytes(const PlannedRun& run, const ActivationBytes& tensors, const StageLoad& load);
// The same while a block is in backward, while the head runs, and at the end of a separate pass of input gradients.
struct WorkingBytes {
  double in_block = 0, in_head = 0, at_end = 0;
  double unused = 0;  // what the head kept, and is freed, beyond the bytes that a block then holds
};
WorkingBytes working_bytes_at(const PlannedRun& run, const ActivationBytes& tensors, const StageLoad& load);

// Returns the bytes that stay allocated during the whole step: its tokens and each block's rotary position table.
double constant_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// Returns the bytes of the hidden states that are in transit between stages at the same time: 0 with one pipeline rank,
// else two or four hidden states. There are four if there are more stages than pipeline ranks. There are also four with
// more than two pipeline ranks, unless each rank has one stage and the schedule has separate weight-gradient passes.
// Borders that no gradient crosses have fewer.
double passed_bytes(const PlannedRun& run, int rank);

}  // namespace braid::plan
