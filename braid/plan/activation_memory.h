// Activations that Megatron-LM's blocks save, by Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models" (2022), section 4. The formulas are generalised to other head counts and feed-forward branches.
// braid_memory.h has the activations of braid's own blocks.
#pragma once

#include "braid/plan/run_layout.h"

namespace braid::plan {

// Returns the bytes that one block saves of one microbatch on a rank, as in table 2 of the paper. The formulas below
// are for 16-bit elements, with s sequence length, b sequences of the microbatch, n = s b tokens, h width, a heads, t
// tensor ranks:
//
//   none                         n h (10 + 24/t + 5 a s / (h t))     sequence parallel: n h (34/t + 5 a s / (h t))
//   selective                    n h (10 + 24/t)                                        n h 34/t
//   full, for each segment       2 n h                                                  2 n h / t
//
// Without dropout there are no masks: 10 becomes 8, 34 becomes 32, and 5 a s becomes 2 a s. Llama models have fused
// attention (formula_set.h). Its float32 statistics replace 5 a s by 4 a, and "selective" saves them too.
//
// 10 n h are the inputs of the two norms (4), the inputs of the two branches (4) and the masks of the two dropouts (2).
// 24 n h are queries, keys and values (6), the attention's output (2), and the activation's input and output (16).
//
// With E experts, of which each token uses k, these 16 become 16 k. The rows sent to the experts and the rows that come
// back add 4 k n h. The router's choice adds 4 n E.
double saved_bytes(const RunSpec& spec, const RunLayout& layout, const spec::Recompute& recompute);

// Returns the part of one block's saved bytes that only the weight-gradient pass needs: 32 n h of 34 n h + 5 a s n (Qi
// et al. 2023, table 1).
double pending_bytes(const RunSpec& spec, const RunLayout& layout);

// Returns the bytes that a stage saves of one microbatch outside its blocks (section 4.3). The first stage keeps the
// mask of the embedding's dropout, n h. The last stage keeps the inputs of its norm and of its product, 4 n h, and
// logits in float32, 4 n V / t, with a vocabulary of V tokens.
double end_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// Returns the working memory of the stage's backward pass. It is the larger of two amounts:
//
//   block   gradients of the scores, twice, or of the activation's input and output if that is more; two hidden states;
//           recomputed activations: those of a whole segment under "full", the scores under "selective"
//   head    the gradient of the logits
double working_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

}  // namespace braid::plan
