// Runs kernels between two readings of the clock.
#include "braid/train/timed_block.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <span>

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

using model::OpKind;

// Returns the linear layers of a block on a tensor rank. Projections that share their input are one layer.
std::vector<TimedLinear> layers_of(const RunSpec& spec, at::Device device) {
  const layout::ModelAccount account = layout::account_of(spec.model);
  const double n = static_cast<double>(spec.train.microbatch) * spec.model.context;
  const layout::RankExtents rank = layout::rank_extents(account, {.tokens = n, .tensor = spec.mesh.tensor});
  std::vector<TimedLinear> layers;
  for (const layout::PartAccount& part : std::span(account.parts).first(account.parts_of_layer())) {
    const size_t first = layers.size();
    for (const auto& [rows, in, out, gradients] : part.products) {
      const auto size = [&](const model::Terms& terms) { return static_cast<int64_t>(terms.at(rank.all)); };
      layers.emplace_back(static_cast<int64_t>(rows.at(rank)), size(in), size(out), scalar_type(spec.train.dtype),
                          device);
    }
    if (layers.size() == first) continue;
    layers.back().forward_sums = part.forward_sums;
    layers[first].backward_sums = part.backward_sums;
  }
  return layers;
}

// Returns the number of the layer's ops of a kind.
int64_t count_of(const model::BlockGraph& layer, model::OpKind kind) {
  return std::ranges::count(layer.ops, kind, &model::Op::kind);
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
  const model::BlockGraph layer = model::graph_of(model).layer_kinds()[0];
  const auto op = std::ranges::find(layer.ops, OpKind::Attention, &model::Op::kind);
  double seen = model::mean_tokens_seen(model.context, 0);
  if (op != layer.ops.end()) {
    call_.window = op->window, call_.cap = op->cap, call_.scale = op->scale, call_.sees = op->sees;
    seen = op->tokens_seen;
  }
  const int64_t features = (call_.heads + 2 * call_.kv_heads) * model::head_width(model);
  const int64_t width = call_.heads * model::head_width(model);
  const at::ScalarType dtype = scalar_type(spec.train.dtype);
  qkv_ = uncounted_tensor({b, s, features}, dtype, device).fill_(0.1).requires_grad_();
  dy_ = uncounted_tensor({b, s, width}, dtype, device).fill_(0.1);
  flops_ = 4.0 * static_cast<double>(b * s) * seen * static_cast<double>(width);
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

TimedElements::TimedElements(const RunSpec& spec, at::Device device) {
  const model::BlockGraph layer = model::graph_of(spec.model).kinds[1];
  const int64_t layer_norms = count_of(layer, OpKind::LayerNorm);
  const auto has = [&](OpKind kind) { return count_of(layer, kind) > 0; };
  const bool gelu_gate = has(OpKind::GeGlu), gated = gelu_gate || has(OpKind::SwiGlu);
  activation_ = gelu_gate              ? OpKind::GeGlu
                : gated                ? OpKind::SwiGlu
                : has(OpKind::GeluErf) ? OpKind::GeluErf
                                       : OpKind::Gelu;
  num_norms_ = static_cast<int>(layer_norms + count_of(layer, OpKind::RmsNorm));
  const int64_t n = int64_t{spec.train.microbatch} * spec.model.context, h = spec.model.width;
  const int64_t f = model::ffn_width(spec.model) / spec.mesh.tensor;
  const auto filled = [&](at::IntArrayRef sizes, double value) {
    return uncounted_tensor(sizes, scalar_type(spec.train.dtype), device).fill_(value);
  };
  x_nh_ = filled({n, h}, 0.5);
  norm_ = {layer_norms > 0 ? kernels::NormKind::Layer : kernels::NormKind::Rms, filled({h}, 1),
           layer_norms > 0 ? filled({h}, 0) : at::Tensor()};
  bias_f_ = filled({f}, 0.1);
  inner_ = filled({n, gated ? 2 * f : f}, 0.1);
  dy_nf_ = filled({n, f}, 0.1);
  const double elements = static_cast<double>(n) * static_cast<double>(11 * num_norms_ * h + (gated ? 8 : 5) * f);
  bytes_ = elements * static_cast<double>(x_nh_.element_size());
}

void TimedElements::activation() {
  if (activation_ == OpKind::SwiGlu) {
    const at::Tensor y = kernels::swiglu(inner_);
    kernels::swiglu_backward_(inner_, dy_nf_);
  } else if (activation_ == OpKind::GeGlu) {
    const at::Tensor y = kernels::geglu(inner_);
    kernels::geglu_backward_(inner_, dy_nf_);
  } else {
    const auto form = activation_ == OpKind::Gelu ? kernels::GeluForm::Tanh : kernels::GeluForm::Erf;
    const at::Tensor y = kernels::bias_gelu(inner_, bias_f_, form);
    kernels::bias_gelu_backward_(inner_, bias_f_, dy_nf_, form);
  }
}

void TimedElements::round() {
  const double begin = now_seconds();
  kernels::Normed normed;
  for (int norm = 0; norm < num_norms_; ++norm) normed = kernels::norm_forward({x_nh_, x_nh_, at::Tensor()}, norm_);
  activation();
  for (int norm = 0; norm < num_norms_; ++norm) kernels::norm_backward({x_nh_, x_nh_}, normed, norm_);
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
  return seconds_of([](int) {});
}

double TimedBlock::round_in_step() {
  return seconds_of([this](int times) { sum(times); });
}

double TimedBlock::sums() {
  const double begin = now_seconds();
  for (const TimedLinear& layer : layers_) sum(layer.forward_sums + layer.backward_sums);
  return now_seconds() - begin;
}

double TimedBlock::product_seconds() const {
  double seconds = attention_.seconds();
  for (const TimedLinear& layer : layers_) seconds += median(layer.all_seconds);
  return seconds;
}

void TimedBlock::sum(int times) {
  for (int i = 0; i < times; ++i) ranks_.all_reduce(hidden_nh_, ReduceOp::Sum).wait_host();
}

template <class Sum>
double TimedBlock::seconds_of(const Sum& sum) {
  const double begin = now_seconds();
  for (TimedLinear& layer : layers_) layer.seconds = 0;
  for (TimedLinear& layer : layers_) {
    time_into(layer.seconds, [&] { layer.forward(); });
    sum(layer.forward_sums);
  }
  attention_.round();
  elements_.round();
  for (size_t i = layers_.size(); i-- > 0;) {
    time_into(layers_[i].seconds, [&] { layers_[i].backward(); });
    sum(layers_[i].backward_sums);
  }
  for (TimedLinear& layer : layers_) layer.all_seconds.push_back(layer.seconds);
  return now_seconds() - begin;
}

}  // namespace braid::train
