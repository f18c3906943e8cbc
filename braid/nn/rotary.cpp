// Composed of LibTorch's operations. Backward turns the other way.
#include "braid/nn/rotary.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <numbers>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"

namespace braid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

double scaled(double frequency, const Llama3Scaling& scaling) {
  const double turns = scaling.context * frequency / (2 * std::numbers::pi);  // within the first context
  if (turns < scaling.low_frequency) return frequency / scaling.factor;
  if (turns > scaling.high_frequency) return frequency;
  const double smooth = (turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

struct Turn {
  at::Tensor cos_t1d, sin_t1d;
  int64_t num_heads;
};

// x_btf's heads turned by the angles (forward) or back (backward, sine negated).
void turn_(const at::Tensor& x_btf, const Turn& turn, const at::Tensor& sin_t1d) {
  const int64_t b = x_btf.size(0), t = x_btf.size(1), half = turn.cos_t1d.size(-1);
  const at::Tensor x_bth2d = x_btf.narrow(2, 0, turn.num_heads * 2 * half).view({b, t, turn.num_heads, 2, half});
  const at::Tensor low = x_bth2d.select(3, 0), high = x_bth2d.select(3, 1);
  const at::Tensor turned_low = low.mul(turn.cos_t1d).sub_(high.mul(sin_t1d));
  high.copy_(high.mul(turn.cos_t1d).add_(low.mul(sin_t1d)));
  low.copy_(turned_low);
}

struct Rotate : Function<Rotate> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_btf, const Turn& turn) {
    keep(ctx, turn);
    ctx->mark_dirty({x_btf});
    turn_(x_btf, turn, turn.sin_t1d);
    return x_btf;
  }
  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const Turn& turn = kept<Turn>(ctx);
    // In place where nobody else can see the gradient.
    const bool ours = grads[0].use_count() == 1 && grads[0].is_contiguous();
    const at::Tensor dx_btf = ours ? std::move(grads[0]) : grads[0].clone(at::MemoryFormat::Contiguous);
    turn_(dx_btf, turn, turn.sin_t1d.neg());
    return {dx_btf, {}};
  }
};

}  // namespace

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
  return Rotate::apply(x_btf,
                       Turn{cos_td_.narrow(0, 0, t).unsqueeze(1), sin_td_.narrow(0, 0, t).unsqueeze(1), num_heads});
}

}  // namespace braid
