// Rotary positions: pairs of a head's features are turned by an angle that grows with the token's place, so that scores
// depend on distances.
//
//   features 0 .. d-1 of a head at place p:   (x[i], x[i + d/2]) turned by p * frequency[i],   i < d/2
//
// Source: Su et al., "RoFormer" (2021), section 3.2; halves paired as in Hugging Face's Llama.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace braid::nn {

// Stretches low frequencies for contexts longer than the one a model was first trained with.
// Source: Hugging Face transformers, modeling_rope_utils, "llama3".
struct Llama3Scaling {
  double factor = 8;          // wavelengths above context / low_frequency become this much longer
  double low_frequency = 1;   // between the two bounds the change is gradual
  double high_frequency = 4;  // wavelengths below context / high_frequency stay
  double context = 8192;      // tokens per sequence of the first training
  bool operator==(const Llama3Scaling&) const = default;
};

struct RotaryOptions {
  int64_t head_width = 0;              // d, even
  int64_t context = 0;                 // most tokens of a sequence
  double base = 10000;                 // frequency[i] = base^(-2 i / d) before scaling
  std::vector<Llama3Scaling> scaling;  // none or one
  bool operator==(const RotaryOptions&) const = default;
};

// frequency[i] of i < d/2, radians per token.
std::vector<double> rotary_frequencies(const RotaryOptions& options);

class Rotary {
 public:
  // Makes tables of context x d/2 cosines and sines on the device of `like`: float64 where that is the type of `like`,
  // else float32, rounded from float64 once.
  Rotary(const RotaryOptions& options, const at::TensorOptions& like);
  // Turns the first `num_heads` heads of d features in every token's row, in place. x_btf: contiguous, no view, f at
  // least num_heads x d, t at most the context. Nothing may have saved x.
  at::Tensor rotate_(const at::Tensor& x_btf, int64_t num_heads) const;
  // The same without autograd, where token i of all b x t is at place places_n[i], less than the context.
  void rotate_at_(const at::Tensor& x_btf, int64_t num_heads, const at::Tensor& places_n) const;

 private:
  int64_t head_width_;
  at::Tensor cos_td_, sin_td_;  // d/2 columns
};

}  // namespace braid::nn
