// Activations of braid's own blocks, tensor by tensor as their layers keep them.
#pragma once

#include "braid/plan/data_exchange.h"

namespace braid::plan {

// The bytes of one block and one microbatch on a rank, with n tokens, e bytes of an element, t tensor ranks, h width, q
// = heads x head width, kv likewise of keys, f features of the feed-forward branch, g = 2 where it is gated, else 1:
//
//   kept by                                        none               selective
//   both norms: the sum that is normalised         2 e n h            2 e n h
//   the products behind them: the normed sum       2 e n h            made again
//   attention: queries, keys and values            e n (q + 2 kv)/t   e n (q + 2 kv)/t
//   the product behind it: its output              e n q/t            made again
//   the activation: its input                      e n g f/t          e n g f/t
//   the product behind it: its output              e n f/t            made again
//   dropout of both branches: its masks            2 n h              2 n h
//   statistics in float32: rows of norms (2 each, 1 of RMSNorm), scores of a head   4 n (2 (3 - g) + heads/t)
//
// With experts the rows of the feed-forward branch are k tokens for each token, all experts having equally many: its
// input and output are k times as large, and beside them are the rows that came, e n k h, those that went back, e n k
// h, of which the router's gradient is made, and its choice in float32, 4 n E. Braid has no such layers yet: an
// estimate of what they must keep.
//
// Under sequence parallelism each e n h is shared by the tensor ranks. Under full recompute the input of each segment,
// e n h. A stage whose output goes to another keeps it until its gradient comes, e n h; the first segment of the
// stage with the embedding has tokens as its input. Dropout of the embedding keeps a mask too, n h.
double kept_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// After the input-gradient pass, where the weight-gradient pass comes later: each product's input and the gradient of
// its output, which is the activation's input overwritten.
double pending_kept_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// The most that one pass of the stage holds beside what is kept of all microbatches. In the head: the gradient of its
// input. In the last block: the gradient that comes and that of the activation's output; in its attention the gradients
// of its output, queries, keys and values; with dropout the gradient behind its mask. What is made again beside. On
// CPUs the products of weight gradients copy factors of narrow types.
double working_most_bytes(const PlannedRun& run, const StageLoad& load);

// Buffers of a rank under ZeRO 2 and 3, which stay from microbatch to microbatch: gradients of three blocks' parameters
// and of each table's uses on their way to their owners; under 3 also the weights of the block that runs and of the
// next, and of embedding and head, or those of the stages that are gathered as a whole. Of what ranks share out alone.
double exchange_buffer_bytes(const PlannedRun& run, const RankShare& share);

// Returns the bytes that are always there: the step's tokens and the rotary tables of each block.
double constant_bytes(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

// Tensors between stages that are on their way at once: two, or four where a rank has several stages, or
// neighbours on both sides that do not wait for its weight gradients.
double passed_bytes(const PlannedRun& run);

}  // namespace braid::plan
