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
#pragma once

#include "braid/plan/block_work.h"

namespace braid::plan {

// Braid's counts, in `work`, become torchtitan's. Activation checkpointing (torchtitan/parallelisms, `_save_list`):
// "selective" saves the outputs of every second product, of attention and of sums over tensor ranks, so that keys, the
// output projection and the gate's product are computed again, and all of elementwise; "full" stops once the input of
// the last product is there.
void count_torchtitan_attention(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work);
void count_torchtitan_feed(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas, PartWork& work);
void count_torchtitan_loss(const RunSpec& spec, const RunLayout& layout, PartWork& work);

}  // namespace braid::plan
