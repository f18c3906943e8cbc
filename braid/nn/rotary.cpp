// The tables of angles, and the autograd function around the fused kernel. Backward rotates by the negative angles.
#include "braid/nn/rotary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <numbers>

#include "braid/base/errors.h"
#include "braid/model/shape.h"
#include "braid/nn/kept.h"
#include "braid/nn/kernels/rotary.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

double scaled(double frequency, const Llama3Scaling& scaling) {
  const double turns = scaling.context * frequency / (2 * std::numbers::pi);  // rotations within the original context
  if (turns < scaling.low_frequency) return frequency / scaling.factor;
  if (turns > scaling.high_frequency) return frequency;
  const double smooth = (turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
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
  RotaryOptions options{model::head_width(spec), spec.context, spec.rope_base, {}};
  if (spec.rope_scaling == RopeScaling::Llama3) {
    const auto context = static_cast<double>(spec.rope_context);
    options.scaling = {{spec.rope_factor, spec.rope_low_frequency, spec.rope_high_frequency, context}};
  }
  return options;
}

std::vector<double> rotary_frequencies(const RotaryOptions& options) {
  check(options.head_width % 2 == 0 && options.scaling.size() <= 1, "heads have pairs of features and one scaling");
  std::vector<double> frequencies;
  for (int64_t i = 0; i < options.head_width / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(options.head_width);
    const double plain = std::pow(options.base, exponent);
    frequencies.push_back(options.scaling.empty() ? plain : scaled(plain, options.scaling[0]));
  }
  return frequencies;
}

Rotary::Rotary(const RotaryOptions& options, const at::TensorOptions& like) : head_width_(options.head_width) {
  const auto frequencies = rotary_frequencies(options);
  const auto half = static_cast<int64_t>(frequencies.size());
  const at::Tensor cos = at::empty({options.context, half}, at::kDouble), sin = at::empty_like(cos);
  double *cosines = cos.mutable_data_ptr<double>(), *sines = sin.mutable_data_ptr<double>();
  for (int64_t place = 0; place < options.context; ++place) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(place) * frequencies[i];
      cosines[place * half + i] = std::cos(angle);
      sines[place * half + i] = std::sin(angle);
    }
  }
  const at::ScalarType type = c10::typeMetaToScalarType(like.dtype()) == at::kDouble ? at::kDouble : at::kFloat;
  cos_td_ = cos.to(like.device(), type);
  sin_td_ = sin.to(like.device(), type);
}

at::Tensor Rotary::rotate_(const at::Tensor& x_btf, int64_t num_heads) const {
  const int64_t t = x_btf.size(1);
  check(t <= cos_td_.size(0), "a sequence is no longer than the table of angles");
  check(x_btf.is_contiguous() && num_heads * head_width_ <= x_btf.size(2), "heads to turn, in rows");
  return Rotate::apply(x_btf, kernels::Rotation{cos_td_.narrow(0, 0, t), sin_td_.narrow(0, 0, t), num_heads});
}

void Rotary::rotate_at_(const at::Tensor& x_btf, int64_t num_heads, const at::Tensor& places_n) const {
  check(x_btf.is_contiguous() && num_heads * head_width_ <= x_btf.size(2), "heads to turn, in rows");
  const kernels::Rotation turn{cos_td_.index_select(0, places_n), sin_td_.index_select(0, places_n), num_heads};
  kernels::rotate_(x_btf.view({1, places_n.size(0), x_btf.size(2)}), turn, kernels::Turn::Forward);
}

}  // namespace braid::nn
