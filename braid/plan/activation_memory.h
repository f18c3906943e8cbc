// Activations that Megatron-LM's blocks save, by Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models" (2022), section 4, generalised to other head counts and feed-forward branches. Those of braid:
// braid_memory.h.
#pragma once

#include "braid/plan/run_layout.h"

namespace braid::plan {

// Returns the saved bytes of one block and one microbatch on a rank, with n = s b tokens, table 2 there (h, a, t as in
// block_work.h), 16-bit:
//
//   none                         n h (10 + 24/t + 5 a s / (h t))     sequence parallel: n h (34/t + 5 a s / (h t))
//   selective                    n h (10 + 24/t)                                        n h 34/t
//   full                         2 n h                                                  2 n h / t
//
// Without dropout there are no masks: 8 in place of 10, 32 of 34, and 2 a s of 5 a s. Attention of Llama models is
// fused (formula_set.h): 4 a in place of 5 a s, float32 statistics, whatever is recomputed.
//
// 10 n h are the inputs of the two norms (4), of the two branches (4) and the masks of two dropouts (2); 24 n h
// queries, keys and values (6), the attention's output (2), before and after the activation (16). Experts make these 16
// k times as large, where a token goes to k of E, and add 4 k n h of the rows that come and go back and 4 n E of the
// choice.
double saved_bytes(const RunSpec& spec, const RunLayout& layout, const spec::Recompute& recompute);

// Returns the part of the saved bytes that only the weight-gradient pass needs: 32 n h of 34 n h + 5 a s n (Qi et al.
// 2023, table 1).
double pending_bytes(const RunSpec& spec, const RunLayout& layout);

// Beside the blocks: the first stage keeps the mask of the embedding's dropout, n h; the last the inputs of its norm
// and of the product, 4 n h, and logits in float32, 4 n V / t (section 4.3).
double end_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// Returns the working memory of the stage's backward pass: gradients of the scores, twice, or of both sides of the
// activation; gradients of logits; a segment's recomputed activations.
double working_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

}  // namespace braid::plan
