// The tables of angles, and the autograd function around the fused kernel. Backward rotates by the negative angles.
#include "braid/nn/rotary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "braid/base/errors.h"
#include "braid/model/shape.h"
#include "braid/nn/kept.h"
#include "braid/nn/kernels/rotary.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

double llama3_scaled(double frequency, const RotaryScaling& scaling) {
  const double turns = scaling.context * frequency / (2 * std::numbers::pi);  // rotations within the original context
  if (turns < scaling.low_frequency) return frequency / scaling.factor;
  if (turns > scaling.high_frequency) return frequency;
  const double smooth = (turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

// Returns the pair of features, a fraction, that turns this often within the original context.
double pair_with_turns(double turns, const RotaryOptions& options) {
  const double wavelength = options.scaling.context / turns;
  return static_cast<double>(options.head_width) * std::log(wavelength / (2 * std::numbers::pi)) /
         (2 * std::log(options.base));
}

// Returns the share of the interpolated frequency of pair i: 0 before the last pair of fast turns, 1 from the first
// of slow turns on.
double yarn_share(int64_t i, const RotaryOptions& options) {
  const double last = static_cast<double>(options.head_width - 1);
  const double first_pair = std::max(std::floor(pair_with_turns(options.scaling.fast_turns, options)), 0.0);
  double last_pair = std::min(std::ceil(pair_with_turns(options.scaling.slow_turns, options)), last);
  if (first_pair == last_pair) last_pair += 1e-3;
  return std::clamp((static_cast<double>(i) - first_pair) / (last_pair - first_pair), 0.0, 1.0);
}

// Returns the base of dynamic scaling, by which the longest wavelength grows with the sequence.
double dynamic_base(const RotaryOptions& options, int64_t length) {
  const RotaryScaling& scaling = options.scaling;
  const double longer = std::max(static_cast<double>(length) / scaling.context, 1.0);
  const auto d = static_cast<double>(options.head_width);
  return options.base * std::pow(scaling.factor * longer - (scaling.factor - 1), d / (d - 2));
}

double scaled(double frequency, int64_t i, const RotaryOptions& options) {
  const RotaryScaling& scaling = options.scaling;
  switch (scaling.kind) {
    case RopeScaling::None:
    case RopeScaling::Dynamic:
      return frequency;
    case RopeScaling::Llama3:
      return llama3_scaled(frequency, scaling);
    case RopeScaling::Linear:
      return frequency / scaling.factor;
    case RopeScaling::Yarn:
      return std::lerp(frequency, frequency / scaling.factor, yarn_share(i, options));
  }
  return frequency;
}

struct Rotate : Function<Rotate> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btf, const kernels::Rotation& turn) {
    keep(ctx, turn);
    ctx->mark_dirty({x_btf});
    kernels::rotate_(x_btf, turn, kernels::Turn::Forward);
    return x_btf;
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& turn = kept<kernels::Rotation>(ctx);
    // The gradient is overwritten if nothing else holds it.
    const bool ours = grads[0].use_count() == 1 && grads[0].storage().use_count() == 1 && grads[0].is_contiguous();
    const at::Tensor dx_btf = ours ? std::move(grads[0]) : grads[0].clone(at::MemoryFormat::Contiguous);
    kernels::rotate_(dx_btf, turn, kernels::Turn::Back);
    return {dx_btf, {}};
  }
};

}  // namespace

RotaryOptions rotary_options(const ModelSpec& spec) {
  RotaryScaling scaling{spec.rope_scaling,       spec.rope_factor,         static_cast<double>(spec.rope_context),
                        spec.rope_low_frequency, spec.rope_high_frequency, spec.rope_fast_turns,
                        spec.rope_slow_turns};
  if (spec.rope_scaling == RopeScaling::Yarn) {
    scaling.magnitude = spec.rope_magnitude > 0 ? spec.rope_magnitude : 1 + std::log(spec.rope_factor) / 10;
  }
  return {model::head_width(spec), spec.context, spec.rope_base, scaling};
}

std::vector<double> rotary_frequencies(const RotaryOptions& options, int64_t length) {
  check(options.head_width % 2 == 0, "heads have pairs of features");
  const bool is_dynamic = options.scaling.kind == RopeScaling::Dynamic;
  const double base = is_dynamic ? dynamic_base(options, length) : options.base;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < options.head_width / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(options.head_width);
    frequencies.push_back(scaled(std::pow(base, exponent), i, options));
  }
  return frequencies;
}

Rotary::Rotary(const RotaryOptions& options, const at::TensorOptions& like)
    : options_(options), like_(like), of_context_(table(tokens_of_sequence(options.context))) {}

std::vector<Rotary::Token> Rotary::tokens_of_sequence(int64_t length) {
  std::vector<Token> tokens;
  for (int64_t position = 0; position < length; ++position) tokens.push_back({position, length});
  return tokens;
}

Rotary::Table Rotary::table(const std::vector<Token>& tokens) const {
  const at::Tensor cos = at::empty({std::ssize(tokens), options_.head_width / 2}, at::kDouble);
  const at::Tensor sin = at::empty_like(cos);
  double *cosines = cos.mutable_data_ptr<double>(), *sines = sin.mutable_data_ptr<double>();
  std::vector<double> frequencies;
  for (int64_t length = -1; const Token& token : tokens) {
    if (std::exchange(length, token.length) != token.length) frequencies = rotary_frequencies(options_, token.length);
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(token.position) * frequency;
      *cosines++ = options_.scaling.magnitude * std::cos(angle);
      *sines++ = options_.scaling.magnitude * std::sin(angle);
    }
  }
  const at::ScalarType type = c10::typeMetaToScalarType(like_.dtype()) == at::kDouble ? at::kDouble : at::kFloat;
  return {cos.to(like_.device(), type), sin.to(like_.device(), type)};
}

at::Tensor Rotary::rotate_(const at::Tensor& x_btf, int64_t num_heads, const kernels::TokenPart& part) const {
  const int64_t t = x_btf.size(1), first = part.number * t, length = part.count * t;
  check(length <= options_.context, "a sequence is no longer than the table of angles");
  check(x_btf.is_contiguous() && num_heads * options_.head_width <= x_btf.size(2), "heads to turn, in rows");
  const bool is_known = options_.scaling.kind != RopeScaling::Dynamic || length == options_.context;
  const Table angles = is_known ? of_context_ : table(tokens_of_sequence(length));
  return Rotate::apply(
      x_btf, kernels::Rotation{angles.cos_nd.narrow(0, first, t), angles.sin_nd.narrow(0, first, t), num_heads});
}

void Rotary::rotate_cached_(const at::Tensor& x_btf, int64_t num_heads, const KeyValueCache& cache) const {
  check(x_btf.is_contiguous() && num_heads * options_.head_width <= x_btf.size(2), "heads to turn, in rows");
  Table angles;
  if (options_.scaling.kind == RopeScaling::Dynamic) {
    std::vector<Token> tokens;
    for (const auto& [sequence, count] : cache.stretches()) {
      const int64_t first = cache.length(sequence), length = first + count;
      for (int64_t position = first; position < length; ++position) tokens.push_back({position, length});
    }
    angles = table(tokens);
  } else {
    angles = {of_context_.cos_nd.index_select(0, cache.places_n()),
              of_context_.sin_nd.index_select(0, cache.places_n())};
  }
  const kernels::Rotation turn{angles.cos_nd, angles.sin_nd, num_heads};
  kernels::rotate_(x_btf.view({1, cache.num_tokens(), x_btf.size(2)}), turn, kernels::Turn::Forward);
}

}  // namespace braid::nn
