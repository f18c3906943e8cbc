// Work and memory of a rank under torchtitan with FSDP2, December 2024. Memory is the most that PyTorch's caching
// allocator reserves, which is the number that torchtitan prints. Memory that a pass has freed stays reserved.
//
// Parameters, gradients and AdamW's moments are float32 and sharded: 16 bytes for each parameter. Weights in the run's
// type are gathered for each pass (torchtitan_weight_bytes()).
#pragma once

#include "braid/plan/block_work.h"
#include "braid/plan/data_exchange.h"

namespace braid::plan {

// Replace braid's counts in `work` by those of torchtitan's Llama blocks, December 2024. They change memory-bound
// kernels and what activation checkpointing recomputes. Products and the volumes of exchanges stay those of
// block_work.h.
//
// Bytes of memory-bound kernels for each token, with e bytes of an element, 4 of float32, and the widths of
// block_work.h. Eager mode has one kernel for each ATen operation, counted from the Python of
// torchtitan/models/llama/model.py:
//
//                                                          forward            backward
//   RMSNorm: to float32, square, mean, scale, back, weight (24 + 4e) h        (60 + 8e) h
//   rotary: to float32, complex product, back              (16 + 2e) (q + kv) the same
//   keys and values repeated for each query head           2e (q + kv)        2e (q + kv), none if q = kv
//   silu, product with the gate                            5e f               9e f
//   residual addition                                      3e h               3e h
//
// When compiled, Inductor fuses each row, and fuses residual additions into the norm after them:
//
//   first norm of a block                                  2e h               6e h
//   second norm, with the addition before it               4e h               6e h
//   rotary, with repetition                                e (4q + 2kv)       the same
//   silu, product with the gate                            3e f               6e f
//   last residual addition                                 3e h               none
//
// The loss is never compiled: (16 + e) V forward, (24 + e) V backward, for logits to float32, log-softmax, its
// gradient, and back to the run's type.
//
// Activation checkpointing (torchtitan/parallelisms, `_save_list`): "selective" saves the outputs of every second
// product, of attention, and of reductions over tensor ranks. It recomputes keys, the output projection, the gate's
// product, and all elementwise kernels. "full" recomputation stops at the input of the last product.
void count_torchtitan_attention(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work);
void count_torchtitan_feed(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work);
void count_torchtitan_loss(const RunSpec& spec, const RunLayout& layout, PartWork& work);

// Returns the bytes that a stage keeps of one microbatch until its backward. For n tokens, t tensor ranks, e bytes of
// an element and the widths of block_work.h, each block (under "full" each segment) keeps:
//
//   none, eager        e n (4h/t + (4q + 4f)/t) + 8 n h/t of the norms in float32 + 2 e n h gathered if t > 1
//   none, compiled     e n (2h/t + (2q + 2kv + 2f)/t)
//   selective          e n (h/t + (2q + kv + f)/t); in eager mode also the output of the last product, e n h; if t > 1
//                      also the reduce-scattered sums, e n h/t (two in eager mode, one compiled)
//   full               e n h/t
//
// All but "full" also keep the statistics of attention, 4 n heads/t.
double torchtitan_kept_bytes(const PlannedRun& run, const StageLoad& load);

// Returns the bytes that a pass of the stage holds in addition to torchtitan_kept_bytes(). Without the head these are
// the tensors of one block or of a recomputed segment, three gradients as wide as the feed-forward layer, and two
// hidden states.
//
// A stage with the head holds these or, if they are larger, the following tensors, from the forward pass on:
//
//   the logits, e n V/t
//   three float32 tensors of that shape, or four if tensor ranks share the loss
//   (torch/distributed/tensor/parallel/loss.py)
//   the gathered input of the head
//   the tensors that a block's forward pass frees at its end
double torchtitan_working_bytes(const PlannedRun& run, const StageLoad& load);

// Returns the bytes of gathered weights in the run's type, in addition to the float32 shards. Embedding, last norm and
// head are FSDP's root group, which stays gathered. Two blocks are gathered at a time, and a third is in the buffer
// that the gather fills.
//
// With pipeline ranks, or under a ZeRO stage other than 3, all weights stay gathered. With pipeline ranks unsharded
// float32 gradients are also accumulated until the last microbatch.
double torchtitan_weight_bytes(const PlannedRun& run, const RankShare& share);

}  // namespace braid::plan
