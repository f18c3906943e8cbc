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

namespace braid::nn {

// Scaling of low frequencies, for contexts longer than that of the model's first training. Source: Hugging Face
// transformers, modeling_rope_utils, "llama3".
struct Llama3Scaling {
  double factor = 8;          // wavelengths above context / low_frequency are multiplied by this
  double low_frequency = 1;   // between the two bounds, the factor changes gradually
  double high_frequency = 4;  // wavelengths below context / high_frequency stay the same
  double context = 8192;      // tokens per sequence in the first training
  bool operator==(const Llama3Scaling&) const = default;
};

struct RotaryOptions {
  int64_t head_width = 0;              // d, even
  int64_t context = 0;                 // maximum number of tokens of a sequence
  double base = 10000;                 // frequency[i] = base^(-2 i / d) before scaling
  std::vector<Llama3Scaling> scaling;  // none or one
  bool operator==(const RotaryOptions&) const = default;
};

// Returns the options of a model's keys.
RotaryOptions rotary_options(const ModelSpec& spec);
// Returns frequency[i] for i < d/2, in radians per token.
std::vector<double> rotary_frequencies(const RotaryOptions& options);

class Rotary {
 public:
  // Makes tables of context x d/2 cosines and sines on the device of `like`. They are float64 if `like` is, else
  // float32, rounded once from float64.
  Rotary(const RotaryOptions& options, const at::TensorOptions& like);
  // Rotates the first `num_heads` heads of d features in every token's row, in place. x_btf: contiguous and no view, f
  // at least num_heads x d, t at most the context. REQUIRES: no backward has saved x.
  at::Tensor rotate_(const at::Tensor& x_btf, int64_t num_heads) const;
  // Rotates without autograd, where token i of all b x t is at position places_n[i], which is less than the context.
  void rotate_at_(const at::Tensor& x_btf, int64_t num_heads, const at::Tensor& places_n) const;

 private:
  int64_t head_width_;
  at::Tensor cos_td_, sin_td_;  // d/2 columns
};

}  // namespace braid::nn
