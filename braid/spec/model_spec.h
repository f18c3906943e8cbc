// The [model] section: which function is trained. It knows no values' rules (fields.h).
#pragma once

#include <string>

namespace braid {

struct ModelSpec {
  std::string preset;           // a known model's sizes (preset.h); other keys of the section override it
  std::string config;           // a Hugging Face config.json to take sizes from; other keys of the section override it
  std::string family = "gpt2";  // gpt2 or llama
  int layers = 6;               // transformer blocks
  int heads = 6;                // attention heads per block
  int kv_heads = 0;             // key and value heads per block, shared by groups of heads; 0: as many as heads
  int width = 384;              // features of the residual stream
  int ffn = 0;                  // features inside the feed-forward branch; 0: ffn_width() chooses
  int context = 256;            // tokens per sequence
  int vocab = 0;                // 0: the tokenizer's
  int vocab_multiple = 64;      // vocabulary is padded to a multiple of this times mesh.tensor
  std::string output_weights = "tied";  // tied: the head shares the token embedding; untied
  double dropout = 0;                   // on embeddings and on both residual branches
  double init_std = 0.02;               // residual projections use init_std / sqrt(2 layers)
  double norm_eps = 1e-5;               // added to the variance (or mean square) in norms
  double rope_base = 10000;             // of rotary positions (llama)
  std::string rope_scaling = "none";    // none or llama3
  double rope_factor = 8;               // llama3: low frequencies are divided by this
  double rope_low_frequency = 1;        // llama3: wavelengths above rope_context / this are divided in full
  double rope_high_frequency = 4;       // llama3: wavelengths below rope_context / this stay
  int rope_context = 8192;              // llama3: context of the first training

  bool operator==(const ModelSpec&) const = default;
};

}  // namespace braid
