// Causal self-attention with its heads split over the tensor axis, and the projections around it. Several query heads
// may share a key and value head. Rotary positions, norms of queries and keys, and a sliding window are optional. There
// is no dropout on probabilities; dropout.h gives the reasons. Source: Vaswani et al., "Attention Is All You Need"
// (2017); Ainslie et al., "GQA" (2023); split as in Shoeybi et al., "Megatron-LM" (2019), section 3.
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

// The arguments of attention_core().
struct CoreCall {
  int64_t heads = 1, kv_heads = 1;
  at::Tensor documents_bt;  // Microbatch::documents_bt
  Keep keep = Keep::Everything;
  int64_t window = 0;  // number of newest tokens that a token attends to, itself included; 0: all
};

// Computes the attention between the two projections. qkv_btf: rows of [queries | keys | values], each one head after
// another. Returns the heads' outputs, b x t x (heads x features). Keep::Everything keeps qkv, the outputs and the
// statistics of their rows. Keep::Selected keeps only qkv. Backward then recomputes the core once; the result serves
// the weight gradient of the next product and the core's own gradient.
//
// With a window w, queries are processed in runs of w tokens. A run is multiplied with the 2 w - 1 keys that its tokens
// attend to, under a mask. So 2 w scores are computed for a token that needs w, at any sequence length. A sequence of
// at most w tokens needs no mask for the window. Source: Beltagy et al., "Longformer" (2020), section 3.1; Jiang et
// al., "Mistral 7B" (2023), section 2.
Activation attention_core(const at::Tensor& qkv_btf, const CoreCall& call);

class Attention {
 public:
  struct Options {
    ParallelLinearOptions qkv;             // [(h + 2 k) d, c]; this rank has h query and k key heads of d features
    ParallelLinearOptions projection;      // [c, h d]
    int local_heads = 1;                   // h
    int local_kv_heads = 0;                // k, a divisor of h: head i uses keys and values of head i / (h / k); 0: h
    std::shared_ptr<const Rotary> rotary;  // rotates queries and keys; null: no rotary positions
    HeadNorms norms = {};                  // norms of queries and keys, applied before the rotation
    int64_t window = 0;                    // number of newest tokens that a token attends to, itself included; 0: all
  };
  Attention(const Options& options, const RankContext& rank)
      : options_(options), qkv_(options.qkv, rank), projection_(options.projection, rank), rank_(rank) {}
  // Returns btc, all-reduced over the tensor axis. With microbatch.documents_bt, a token attends only to its own
  // document; the tokens of a document are contiguous, and rotary positions count from the start of the sequence. With
  // microbatch.cache, keys and values are stored in the cache, and tokens attend to those cached for their sequence.
  // Throws CommError.
  at::Tensor forward(const Activation& x_btc, const Microbatch& microbatch) const;

 private:
  at::Tensor cached_forward(const at::Tensor& qkv_btf, const Microbatch& microbatch) const;

  Options options_;
  ColumnParallelLinear qkv_;
  RowParallelLinear projection_;
  RankContext rank_;
};

}  // namespace braid::nn
