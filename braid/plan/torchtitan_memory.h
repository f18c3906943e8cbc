// Memory of a rank under torchtitan with FSDP2, December 2024: what its caching allocator has reserved at its fullest,
// which is the number that torchtitan prints. Memory once taken for a pass and freed again stays reserved.
//
// Parameters are float32 and sharded, as are gradients and AdamW's moments: 16 bytes each. Weights in the run's type
// are gathered for a pass (torchtitan_weight_bytes()).
#pragma once

#include "braid/plan/data_exchange.h"

namespace braid::plan {

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
