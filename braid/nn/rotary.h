// Rotary positions: pairs of a head's features are rotated by an angle proportional to the token's position, so that
// scores depend on distances.
//
//   features 0 .. d-1 of a head at position p:   (x[i], x[i + d/2]) rotated by p * frequency[i],   i < d/2
//
// Source: Su et al., "RoFormer" (2021), section 3.2; halves paired as in Hugging Face's Llama.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/model/model_spec.h"
#include "braid/nn/kernels/token_part.h"
#include "braid/nn/key_value_cache.h"

namespace braid::nn {

// How frequencies are changed for contexts longer than that of the model's first training. Source: Hugging Face
// transformers, modeling_rope_utils.
struct RotaryScaling {
  RopeScaling kind = RopeScaling::None;
  double factor = 8;      // how much longer contexts become
  double context = 8192;  // tokens per sequence in the first training; not of linear
  // llama3: wavelengths above context / low_frequency are multiplied by the factor, and those below context /
  // high_frequency stay the same. Between the two bounds, the factor changes gradually.
  double low_frequency = 1, high_frequency = 4;
  // yarn: the same with numbers of turns within the context, gradually from pair to pair. Source: Peng et al., "YaRN"
  // (2023), section 3.2.
  double fast_turns = 32, slow_turns = 1;
  double magnitude = 1;  // of cosines and sines
  bool operator==(const RotaryScaling&) const = default;
};

struct RotaryOptions {
  int64_t head_width = 0;  // d, even
  int64_t context = 0;     // maximum number of tokens of a sequence
  double base = 10000;     // frequency[i] = base^(-2 i / d) before scaling
  RotaryScaling scaling;
  bool operator==(const RotaryOptions&) const = default;
};

// Returns the options of a model's keys.
RotaryOptions rotary_options(const ModelSpec& spec);
// Returns frequency[i] for i < d/2, in radians per token, in sequences of `length` tokens. Only dynamic scaling depends
// on the length.
std::vector<double> rotary_frequencies(const RotaryOptions& options, int64_t length);

class Rotary {
 public:
  // Makes tables of context x d/2 cosines and sines on the device of `like`. They are float64 if `like` is, else
  // float32, rounded once from float64.
  Rotary(const RotaryOptions& options, const at::TensorOptions& like);
  // Rotates the first `num_heads` heads of d features in every token's row, in place. x_btf: contiguous and no view, f
  // at least num_heads x d. The t tokens are the given part of each sequence, which is at most as long as the context.
  // REQUIRES: no backward has saved x.
  at::Tensor rotate_(const at::Tensor& x_btf, int64_t num_heads, const kernels::TokenPart& part = {}) const;
  // Rotates the tokens of the cache's forward, without autograd. With dynamic scaling a sequence is as long as its
  // newest token's position says; keys that are cached keep the angles of their own forward.
  void rotate_cached_(const at::Tensor& x_btf, int64_t num_heads, const KeyValueCache& cache) const;

 private:
  struct Token {
    int64_t position, length;  // length: of its sequence
  };
  struct Table {
    at::Tensor cos_nd, sin_nd;  // d/2 columns
  };
  static std::vector<Token> tokens_of_sequence(int64_t length);
  Table table(const std::vector<Token>& tokens) const;

  const RotaryOptions options_;
  const at::TensorOptions like_;
  Table of_context_;  // of all positions of a sequence of `context` tokens
};

}  // namespace braid::nn
