// Memory of a rank under torchtitan with FSDP2, December 2024: what its caching allocator has reserved at its fullest,
// which is the number that torchtitan prints. Memory once taken for a pass and freed again stays reserved.
//
// Parameters are float32 and sharded, as are gradients and AdamW's moments: 16 bytes each. Weights in the run's type
// are gathered for a pass (torchtitan_weight_bytes()).
#pragma once

#include "braid/plan/block_work.h"
#include "braid/plan/data_exchange.h"

namespace braid::plan {

// Passes over memory of torchtitan's Llama blocks, December 2024, and what its activation checkpointing computes again.
// Products and the volumes of exchanges are those of block_work.h.
//
// Bytes for each token, e of an element, 4 of float32, widths as in block_work.h. Eager: one kernel for each operation
// of ATen, counted from the Python of torchtitan/models/llama/model.py:
//
//                                                          forward            backward
//   RMSNorm: to float32, square, mean, scale, back, weight (24 + 4e) h        (60 + 8e) h
//   rotary: to float32, complex product, back              (16 + 2e) (q + kv) the same
//   keys and values repeated for each query head           2e (q + kv)        2e (q + kv), none where q = kv
//   silu, product with the gate                            5e f               9e f
//   sum with the residual                                  3e h               3e h
//
// Compiled: Inductor fuses each row, and sums with the residual into the norm behind: norms 2e h and 4e h forward, 6e h
// each backward; rotary with repetition e (4q + 2kv) each way; the activation 3e f and 6e f; the last sum 3e h forward.
// The loss is never compiled: logits to float32, log-softmax, its gradient, back: (16 + e) V and (24 + e) V.

// Braid's counts, in `work`, become torchtitan's. Activation checkpointing (torchtitan/parallelisms, `_save_list`):
// "selective" saves the outputs of every second product, of attention and of sums over tensor ranks, so that keys, the
// output projection and the gate's product are computed again, and all of elementwise; "full" stops once the input of
// the last product is there.
void count_torchtitan_attention(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work);
void count_torchtitan_feed(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work);
void count_torchtitan_loss(const RunSpec& spec, const RunLayout& layout, PartWork& work);

// Returns the bytes kept of one stage and microbatch until its backward, in n tokens, t tensor ranks, e bytes, widths
// of block_work.h:
//
//   none, eager        e n (4h/t + (4q + 4f)/t) + 8 n h/t of the norms in float32 + 2 e n h gathered where t > 1
//   none, compiled     e n (2h/t + (2q + 2kv + 2f)/t)
//   selective          e n (h/t + (2q + kv + f)/t), and eager the output of the last product, e n h, and where t > 1
//                      scattered sums, e n h/t (two eager, one compiled)
//   full               e n h/t
//
// and 4 n heads/t of attention's statistics but for "full".
double torchtitan_kept_bytes(const PlannedRun& run, const StageLoad& load);

// Beside that, while a stage works. In a stage with the head, from the forward pass on: its logits, e n V/t, and three
// tensors of them in float32, four where tensor ranks share the loss (torch/distributed/tensor/parallel/loss.py); the
// head's gathered input; and the tensors of a block's forward pass. In others: a block that is recomputed, and
// gradients as wide as its feed-forward branch.
double torchtitan_working_bytes(const PlannedRun& run, const StageLoad& load);

// Weights in the run's type beside the shards. Embedding, last norm and head are FSDP's root group, which stays
// gathered; of blocks two are gathered at a time, and a third in the buffer that the gather fills. With pipeline ranks,
// or under another stage of ZeRO than 3, all weights stay gathered; with pipeline ranks gradients are added up in
// float32 until the last microbatch.
double torchtitan_weight_bytes(const PlannedRun& run, const RankShare& share);

}  // namespace braid::plan
