// Causal self-attention with its heads split over the tensor axis, and the projections around it. Queries may share key
// and value heads by groups; positions may be rotary, heads normalised, and what a token sees may end with a window.
// Source: Vaswani et al., "Attention Is All You Need" (2017); Ainslie et al., "GQA" (2023); cut as in Shoeybi et al.,
// "Megatron-LM" (2019), section 3. No dropout on probabilities (dropout.h says why).
//
//   x_btc -> qkv: column, [q heads | k heads | v heads] of this rank -> norms, rotation, attention per head
//         -> projection: row -> btc
#pragma once

#include <memory>

#include "braid/nn/activation.h"
#include "braid/nn/block.h"
#include "braid/nn/linear.h"
#include "braid/nn/norms.h"
#include "braid/nn/rotary.h"

namespace braid::nn {

// Attention between its two projections: heads of queries, keys and values to heads of outputs.
struct CoreCall {
  int64_t heads = 1, kv_heads = 1;
  at::Tensor documents_bt;  // of the microbatch
  Keep keep = Keep::Everything;
  int64_t window = 0;  // newest tokens that a token sees, itself among them; 0: all of its past
};

// qkv_btf: rows of [queries | keys | values], heads by heads. Returns the heads' outputs, b x t x (heads x features).
// Keep::Everything keeps qkv, the outputs and the statistics of their rows; Keep::Selected keeps qkv alone: backward
// runs the core once more, and both the product behind it and the core's own gradient use that run.
//
// With a window w, queries come in runs of w tokens, each against the 2 w - 1 keys that it sees under a mask: 2 w
// scores are formed for a token that needs w, whatever the sequence's length. A sequence of at most w tokens has no
// mask. Source: Beltagy et al., "Longformer" (2020), section 3.1; Jiang et al., "Mistral 7B" (2023), section 2.
Activation attention_core(const at::Tensor& qkv_btf, const CoreCall& call);

class Attention {
 public:
  struct Options {
    ParallelLinearOptions qkv;             // [(h + 2 k) d, c], h, k heads of this rank, d features each
    ParallelLinearOptions projection;      // [c, h d]
    int local_heads = 1;                   // h
    int local_kv_heads = 0;                // k, divides h: head i reads keys and values of head i / (h / k); 0: h
    std::shared_ptr<const Rotary> rotary;  // turns queries and keys; null: no positions
    HeadNorms norms = {};                  // of queries and keys, before they are turned
    int64_t window = 0;                    // newest tokens that a token sees, itself among them; 0: all
  };
  Attention(const Options& options, const RankContext& rank)
      : options_(options), qkv_(options.qkv, rank), projection_(options.projection, rank), rank_(rank) {}
  // btc, summed over the tensor ranks and the same on all of them. With microbatch.documents_bt a token sees its own
  // document only, which lies in one run; its rotary place remains the one in the sequence. With microbatch.cache keys
  // and values go there, and tokens see those that are there. Throws CommError.
  at::Tensor forward(const Activation& x_btc, const Microbatch& microbatch) const;

 private:
  at::Tensor cached_forward(const at::Tensor& qkv_btf, const Microbatch& microbatch) const;

  Options options_;
  ColumnParallelLinear qkv_;
  RowParallelLinear projection_;
  RankContext rank_;
};

}  // namespace braid::nn
