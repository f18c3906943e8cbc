// The [model] section: the architecture and sizes of the model.
#pragma once

#include <string>

#include "braid/base/word.h"
#include "braid/model/families/list.h"

namespace braid {

// Tied: the head shares the token embedding.
enum class OutputWeights { Tied, Untied };
constexpr auto words(OutputWeights) { return std::to_array<std::string_view>({"tied", "untied"}); }

enum class RopeScaling { None, Llama3, Linear, Dynamic, Yarn };
constexpr auto words(RopeScaling) {
  return std::to_array<std::string_view>({"none", "llama3", "linear", "dynamic", "yarn"});
}

struct ModelSpec {
  std::string preset;  // a known model's sizes (preset.h); other keys of the section override it
  std::string config;  // a Hugging Face config.json to take sizes from; other keys of the section override it
  ModelFamily family = {};
  int layers = 6;             // transformer blocks
  int heads = 6;              // attention heads per block
  int kv_heads = 0;           // key and value heads per block, shared by groups of heads; 0: as many as heads
  int width = 384;            // features of the residual stream
  int head_width = 0;         // features of one head; 0: width / heads
  bool qkv_bias = false;      // biases on queries, keys and values
  bool qk_norm = false;       // an RMSNorm over each head's queries and keys, before they are rotated
  int window = 0;             // newest tokens that a token attends to, itself included; 0: all
  double attention_cap = 0;   // attention scores x become cap tanh(x / cap); 0: they stay
  double logit_cap = 0;       // the same of the logits
  double query_scalar = 0;    // attention scores are divided by its square root; 0: by that of the head's width
  int ffn = 0;                // features inside the feed-forward branch, or inside each expert; 0: ffn_width()
  int experts = 0;            // feed-forward branches per block, chosen by a router for each token; 0: one dense branch
  int experts_per_token = 1;  // number of experts that the router chooses for each token
  int context = 256;          // tokens per sequence
  int vocab = 0;              // number of tokens; 0: the tokenizer's
  int vocab_multiple = 64;    // the vocabulary is padded to a multiple of this times mesh.tensor
  int vocab_parts = 1;        // or times this if it is more; no key, but set by spec::with_parts()
  OutputWeights output_weights = OutputWeights::Tied;
  double dropout = 0;        // dropout rate on the embeddings and on both residual branches
  double init_std = 0.02;    // standard deviation of initial weights; of residual projections: this / sqrt(2 layers)
  double norm_eps = 1e-5;    // added to the variance (or mean square) in norms
  double rope_base = 10000;  // base of the rotary positions
  RopeScaling rope_scaling = RopeScaling::None;
  double rope_factor = 8;          // how much longer contexts become
  double rope_low_frequency = 1;   // llama3: wavelengths above rope_context / this are divided in full
  double rope_high_frequency = 4;  // llama3: wavelengths below rope_context / this are unchanged
  int rope_context = 8192;         // llama3, dynamic, yarn: tokens per sequence of the model's first training
  double rope_fast_turns = 32;     // yarn: frequencies with more turns within rope_context are unchanged
  double rope_slow_turns = 1;      // yarn: frequencies with fewer turns are divided by rope_factor
  double rope_magnitude = 0;       // yarn: factor of rotated features; 0: 1 + log(rope_factor) / 10

  bool operator==(const ModelSpec&) const = default;
};

}  // namespace braid
