// Runs kernels between two readings of the clock.
#include "braid/train/timed_block.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "braid/base/clock.h"
#include "braid/base/median.h"
#include "braid/layout/account.h"
#include "braid/model/families.h"
#include "braid/model/model_flops.h"
#include "braid/model/shape.h"
#include "braid/nn/kernels/activations.h"
#include "braid/nn/kernels/product.h"
#include "braid/train/measuring.h"
#include "braid/train/rank_model.h"

namespace braid::train {
namespace {

// Returns the linear layers of a block on a tensor rank. Projections that share their input are one layer.
std::vector<TimedLinear> layers_of(const RunSpec& spec, at::Device device) {
  const layout::ModelAccount account = layout::account_of(spec.model);
  const double n = static_cast<double>(spec.train.microbatch) * spec.model.context;
  const layout::RankExtents rank = layout::rank_extents(account, {.tokens = n, .tensor = spec.mesh.tensor});
  std::vector<TimedLinear> layers;
  for (const layout::PartAccount& half : {account.attention, account.feed}) {
    for (const auto& [rows, in, out] : half.products) {
      const auto size = [&](const model::Terms& terms) { return static_cast<int64_t>(terms.at(rank.all)); };
      layers.emplace_back(static_cast<int64_t>(rows.at(rank)), size(in), size(out), scalar_type(spec.train.dtype),
                          device);
    }
  }
  return layers;
}

template <class Call>
void time_into(double& seconds, const Call& call) {
  const double begin = now_seconds();
  call();
  seconds += now_seconds() - begin;
}

}  // namespace

TimedLinear::TimedLinear(int64_t tokens, int64_t in, int64_t out, at::ScalarType dtype, at::Device device)
    : x_ni_(uncounted_tensor({tokens, in}, dtype, device).fill_(0.5)),
      weight_oi_(uncounted_tensor({out, in}, dtype, device).fill_(0.25)),
      y_no_(uncounted_tensor({tokens, out}, dtype, device).fill_(0.5)),
      dx_ni_(uncounted_tensor({tokens, in}, dtype, device)),
      slot_oi_(uncounted_tensor({out, in}, dtype == at::kDouble ? dtype : at::kFloat, device).fill_(0)) {}

double TimedLinear::flops() const {
  return 2.0 * static_cast<double>(y_no_.numel()) * static_cast<double>(x_ni_.size(1));
}

void TimedLinear::forward() { kernels::product_out(y_no_, x_ni_, weight_oi_.t()), wait_for(y_no_); }

void TimedLinear::backward() {
  kernels::product_out(dx_ni_, y_no_, weight_oi_);
  kernels::accumulate_product(slot_oi_, y_no_, x_ni_, 0);
  wait_for(slot_oi_);
}

TimedAttention::TimedAttention(const RunSpec& spec, at::Device device) {
  const ModelSpec& model = spec.model;
  const int64_t b = spec.train.microbatch, s = model.context, t = spec.mesh.tensor;
  call_.heads = model.heads / t;
  call_.kv_heads = std::max<int64_t>(model::num_kv_heads(model) / t, 1);
  call_.window = model.window;
  const int64_t features = (call_.heads + 2 * call_.kv_heads) * model::head_width(model);
  const int64_t width = call_.heads * model::head_width(model);
  const at::ScalarType dtype = scalar_type(spec.train.dtype);
  qkv_ = uncounted_tensor({b, s, features}, dtype, device).fill_(0.1).requires_grad_();
  dy_ = uncounted_tensor({b, s, width}, dtype, device).fill_(0.1);
  flops_ = 4.0 * static_cast<double>(b * s) * model::mean_tokens_seen(model) * static_cast<double>(width);
}

void TimedAttention::round() {
  const c10::AutoGradMode with_grad(true);
  const double begin = now_seconds();
  const at::Tensor y = nn::attention_core(qkv_, call_).value;
  wait_for(y);
  const double middle = now_seconds();
  const auto gradients = torch::autograd::grad({y}, {qkv_}, {dy_});
  wait_for(gradients[0]);
  forward_.push_back(middle - begin);
  backward_.push_back(now_seconds() - middle);
}

double TimedAttention::context() const { return static_cast<double>(qkv_.size(1)); }
double TimedAttention::forward_rate() const { return flops_ / median(forward_); }
double TimedAttention::backward_rate() const { return 2.5 * flops_ / median(backward_); }
double TimedAttention::seconds() const { return median(forward_) + median(backward_); }

TimedElements::TimedElements(const RunSpec& spec, at::Device device)
    : gated_(model::family_of(spec.model).traits.feed_forward == model::FeedForward::Gated) {
  const int64_t n = int64_t{spec.train.microbatch} * spec.model.context, h = spec.model.width;
  const int64_t f = model::ffn_width(spec.model) / spec.mesh.tensor;
  const auto filled = [&](at::IntArrayRef sizes, double value) {
    return uncounted_tensor(sizes, scalar_type(spec.train.dtype), device).fill_(value);
  };
  x_nh_ = filled({n, h}, 0.5);
  norm_ = {gated_ ? kernels::NormKind::Rms : kernels::NormKind::Layer, filled({h}, 1),
           gated_ ? at::Tensor() : filled({h}, 0)};
  bias_f_ = filled({f}, 0.1);
  inner_ = filled({n, gated_ ? 2 * f : f}, 0.1);
  dy_nf_ = filled({n, f}, 0.1);
  const double elements = static_cast<double>(n) * static_cast<double>(22 * h + (gated_ ? 8 : 5) * f);
  bytes_ = elements * static_cast<double>(x_nh_.element_size());
}

void TimedElements::round() {
  const double begin = now_seconds();
  kernels::Normed normed;
  for (int norm = 0; norm < 2; ++norm) normed = kernels::norm_forward({x_nh_, x_nh_, at::Tensor()}, norm_);
  const at::Tensor y = gated_ ? kernels::swiglu(inner_) : kernels::bias_gelu(inner_, bias_f_);
  if (gated_) {
    kernels::swiglu_backward_(inner_, dy_nf_);
  } else {
    kernels::bias_gelu_backward_(inner_, bias_f_, dy_nf_);
  }
  for (int norm = 0; norm < 2; ++norm) kernels::norm_backward({x_nh_, x_nh_}, normed, norm_);
  wait_for(inner_);
  seconds_.push_back(now_seconds() - begin);
  inner_.fill_(0.1);  // gradients of gradients would soon become NaN
}

double TimedElements::tensor_bytes() const { return static_cast<double>(x_nh_.nbytes()); }
double TimedElements::bytes_per_second() const { return bytes_ / median(seconds_); }

TimedBlock::TimedBlock(const RunSpec& spec, at::Device device, Communicator& ranks)
    : layers_(layers_of(spec, device)), attention_(spec, device), elements_(spec, device), ranks_(ranks) {
  const at::ScalarType type = scalar_type(spec.train.dtype);
  hidden_nh_ = uncounted_tensor({int64_t{spec.train.microbatch} * spec.model.context, spec.model.width}, type, device);
  hidden_nh_.fill_(0);
}

double TimedBlock::round() {
  return seconds_of([] {});
}

double TimedBlock::round_in_step() {
  return seconds_of([this] { sum(); });
}

// Times the all-reduces of a block: two in the forward pass and two in the backward pass.
double TimedBlock::sums() {
  const double begin = now_seconds();
  for (size_t i = 0; i < layers_.size(); ++i) sum();
  return now_seconds() - begin;
}

double TimedBlock::product_seconds() const {
  double seconds = attention_.seconds();
  for (const TimedLinear& layer : layers_) seconds += median(layer.all_seconds);
  return seconds;
}

void TimedBlock::sum() { ranks_.all_reduce(hidden_nh_, ReduceOp::Sum).wait_host(); }

template <class Sum>
double TimedBlock::seconds_of(const Sum& sum) {
  const double begin = now_seconds();
  for (TimedLinear& layer : layers_) layer.seconds = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    time_into(layers_[i].seconds, [&] { layers_[i].forward(); });
    if (i % 2 == 1) sum();
  }
  attention_.round();
  elements_.round();
  for (size_t i = layers_.size(); i-- > 0;) {
    time_into(layers_[i].seconds, [&] { layers_[i].backward(); });
    if (i % 2 == 0) sum();
  }
  for (TimedLinear& layer : layers_) layer.all_seconds.push_back(layer.seconds);
  return now_seconds() - begin;
}

}  // namespace braid::train
