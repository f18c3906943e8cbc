// Activations that Megatron-LM's blocks save, by Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models" (2022), section 4. The formulas also cover grouped-query attention, gated feed-forward layers and
// experts. braid_memory.h has the activations of braid's own blocks.
#pragma once

#include "braid/plan/run_layout.h"

namespace braid::plan {

// Returns the bytes that one block saves of one microbatch on a rank, as in table 2 of the paper. Under full recompute
// only the input of each segment is saved; a segment is a number of consecutive blocks that are recomputed together
// (spec/recompute.h). The formulas are for 16-bit elements, with s sequence length, b sequences of the microbatch, n =
// s b tokens, h width, a heads, t tensor ranks:
//
//   none                         n h (10 + 24/t + 5 a s / (h t))     sequence parallel: n h (34/t + 5 a s / (h t))
//   selective                    n h (10 + 24/t)                                        n h 34/t
//   full, for each segment       2 n h                                                  2 n h / t
//
// A block that a list ("blocks:LIST") leaves out is one of "none".
//
// Without dropout there are no masks: 10 becomes 8, 34 becomes 32, and 5 a s becomes 2 a s. Llama models have fused
// attention (formula_set.h), which saves float32 statistics instead of scores: 4 a replaces 5 a s. "selective" saves
// the statistics too.
//
// 10 n h are the inputs of the two norms (4), the inputs of the two branches (4) and the masks of the two dropouts (2).
// 24 n h are queries, keys and values (6), the attention's output (2), and the activation's input and output (16).
//
// With E experts, of which each token uses k, these 16 n h become 16 k n h. The tokens dispatched to the experts and
// the outputs that come back add 4 k n h. The router's float32 probabilities add 4 n E.
double saved_bytes(const RunSpec& spec, const RunLayout& layout, const spec::Recompute& recompute);

// Returns the part of one block's saved bytes that only the weight-gradient pass needs: 32 n h of 34 n h + 5 a s n (Qi
// et al. 2023, table 1).
double pending_bytes(const RunSpec& spec, const RunLayout& layout);

// Returns the bytes that a stage saves of one microbatch outside its blocks (section 4.3). The first stage keeps the
// mask of the embedding's dropout, n h. The last stage keeps the inputs of the last norm and of the output projection,
// 4 n h. It also keeps float32 logits, 4 n V / t, with a vocabulary of V tokens.
double end_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// Returns the working memory of the stage's backward pass, beside the saved bytes. It is the larger of two amounts:
//
//   block   two hidden states; two copies of the scores' gradient or, if larger, the gradients of the activation's
//           input and output; what is recomputed: a whole segment under "full", the scores under "selective"
//   head    the gradient of the logits
double working_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

}  // namespace braid::plan
