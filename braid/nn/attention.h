// The attention core: self-attention of the heads on this rank, causal or both ways. Several query heads may share a
// key and value head, and tokens may see a sliding window or their own document only. There is no dropout on
// probabilities; dropout.h gives the reasons. Source: Vaswani et al., "Attention Is All You Need" (2017); Ainslie et
// al., "GQA" (2023).
#pragma once

#include "braid/model/graph.h"
#include "braid/nn/activation.h"
#include "braid/nn/block.h"

namespace braid::nn {

// The memory in which attention_core() computes.
enum class CoreMemory {
  AllHeads,  // that of the projection
  KeyHeads,  // a copy in which each key head is with its queries (head_groups.h) and is computed by itself, without
             // context ranks
};

// The arguments of attention_core().
struct CoreCall {
  int64_t heads = 1, kv_heads = 1;
  at::Tensor documents_bt;  // Microbatch::documents_bt: a token attends only to its own document, which is contiguous
  Keep keep = Keep::Everything;
  int64_t window = 0;                       // number of newest tokens that a token attends to, itself included; 0: all
  double cap = 0;                           // scores s become cap tanh(s / cap); 0: they stay. CPU only
  double scale = 0;                         // factor of q . k; 0: 1 / sqrt(features of a head)
  model::Sees sees = model::Sees::Earlier;  // All: without a window and a cap
  // The ranks that have the other tokens. A ring is on CPUs. `documents_bt` are those of all tokens.
  // All ranks call attention_core() together, and run its backward together.
  ContextGroup context = {};
  CoreMemory memory = CoreMemory::AllHeads;
};

// Returns the factor of q . k.
double score_scale(double scale, int64_t head_width);

// Computes the attention between the two projections. qkv_btf: rows of [queries | keys | values], each one head after
// another. Returns the heads' outputs, b x t x (heads x features). Keep::Everything keeps qkv, the outputs and the
// statistics of their rows. Keep::Selected keeps only qkv. Backward then recomputes the core once; the result serves
// the weight gradient of the next product and the core's own gradient.
//
// With a window w, queries are processed in runs of w tokens. A run is multiplied with the 2 w - 1 keys that its tokens
// attend to, under a mask. So 2 w scores are computed for a token that needs w, at any sequence length. A sequence of
// at most w tokens needs no mask for the window. Source: Beltagy et al., "Longformer" (2020), section 3.1; Jiang et
// al., "Mistral 7B" (2023), section 2. With a cap, a kernel of braid's (kernels/capped_attention.h) computes all of it,
// and no runs are formed. Source: Gemma Team, "Gemma 2" (2024), section 2.
Activation attention_core(const at::Tensor& qkv_btf, const CoreCall& call);

}  // namespace braid::nn
