// A block without what lies between its products: each weight is cold when its turn comes, as in training.
#include "braid/train/kernel_probe.h"

#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "braid/base/clock.h"
#include "braid/base/median.h"
#include "braid/nn/attention_core.h"
#include "braid/nn/kernels/gelu.h"
#include "braid/nn/kernels/norm.h"
#include "braid/nn/kernels/product.h"
#include "braid/nn/kernels/swiglu.h"
#include "braid/spec/model_flops.h"
#include "braid/spec/model_shape.h"
#include "braid/train/rank_model.h"
#include "braid/train/unaccounted.h"

namespace braid {
namespace {

constexpr int kFewestRounds = 2, kMostRounds = 200, kWarmUps = 1;
constexpr double kBudget = 0.3;   // seconds of a block
constexpr double kTooLong = 0.2;  // of one round; no wider block is tried then

// One head is 32 or 64 wide; no product of one has as many operations as one of another.
struct StandIn {
  int width, heads, context, microbatch;
};
constexpr StandIn kStandIns[] = {{32, 1, 16, 4}, {64, 1, 64, 4}, {192, 3, 256, 2}, {512, 8, 1024, 1}};

RunSpec spec_of(const StandIn& block, DType dtype) {
  RunSpec spec;
  spec.train.dtype = dtype;
  spec.train.microbatch = block.microbatch;
  spec.model.context = block.context;
  spec.model.heads = block.heads;
  spec.model.width = block.width;
  return spec;
}

double all_reduced(double value, ReduceOp op, Communicator& ranks) {
  const at::Tensor number = at::full({1}, value, at::kDouble);
  ranks.all_reduce(number, op).wait_host();
  return number.item<double>();
}

double mean_of_ranks(double value, Communicator& ranks) {
  return all_reduced(value, ReduceOp::Sum, ranks) / ranks.size();
}

// A layer of weights, its input and the gradient of its output; what it computes lies in memory of its own.
class TimedLinear {
 public:
  TimedLinear(int64_t tokens, int64_t in, int64_t out, at::ScalarType dtype, at::Device device)
      : x_ni_(unaccounted({tokens, in}, dtype, device).fill_(0.5)),
        weight_oi_(unaccounted({out, in}, dtype, device).fill_(0.25)),
        y_no_(unaccounted({tokens, out}, dtype, device).fill_(0.5)),
        dx_ni_(unaccounted({tokens, in}, dtype, device)),
        slot_oi_(unaccounted({out, in}, dtype == at::kDouble ? dtype : at::kFloat, device).fill_(0)) {}

  double flops() const { return 2.0 * static_cast<double>(y_no_.numel()) * static_cast<double>(x_ni_.size(1)); }

  void forward() { at::mm_out(y_no_, x_ni_, weight_oi_.t()), wait_for(y_no_); }
  void backward() {
    at::mm_out(dx_ni_, y_no_, weight_oi_);
    kernels::accumulate_product(slot_oi_, y_no_, x_ni_, 0);
    wait_for(slot_oi_);
  }

  double seconds = 0;               // of the round at hand
  std::vector<double> all_seconds;  // of each round

 private:
  at::Tensor x_ni_, weight_oi_, y_no_, dx_ni_, slot_oi_;
};

// The layers of a block on a tensor rank; projections that share their input are one.
std::vector<TimedLinear> layers_of(const RunSpec& spec, at::Device device) {
  const ModelSpec& model = spec.model;
  const int64_t n = int64_t{spec.train.microbatch} * model.context, h = model.width, t = spec.mesh.tensor;
  const int64_t q = int64_t{model.heads} * head_width(model), kv = int64_t{num_kv_heads(model)} * head_width(model);
  const int64_t f = ffn_width(model);
  const bool gated = traits_of(model.family).feed_forward == FeedForward::Gated;
  const at::ScalarType dtype = scalar_type(spec.train.dtype);
  std::vector<TimedLinear> layers;
  layers.emplace_back(n, h, (q + 2 * kv) / t, dtype, device);
  layers.emplace_back(n, q / t, h, dtype, device);
  layers.emplace_back(n, h, (gated ? 2 : 1) * f / t, dtype, device);
  layers.emplace_back(n, f / t, h, dtype, device);
  return layers;
}

class TimedAttention {
 public:
  TimedAttention(const RunSpec& spec, at::Device device) {
    const ModelSpec& model = spec.model;
    const int64_t b = spec.train.microbatch, s = model.context, t = spec.mesh.tensor;
    call_.heads = model.heads / t;
    call_.kv_heads = std::max<int64_t>(num_kv_heads(model) / t, 1);
    call_.window = model.window;
    const int64_t features = (call_.heads + 2 * call_.kv_heads) * head_width(model);
    const auto options = at::TensorOptions(scalar_type(spec.train.dtype)).device(device);
    qkv_ = at::full({b, s, features}, 0.1, options).requires_grad_();
    dy_ = at::full({b, s, call_.heads * head_width(model)}, 0.1, options);
    const double width = static_cast<double>(call_.heads) * head_width(model);
    flops_ = 4.0 * static_cast<double>(b * s) * mean_tokens_seen(model) * width;
  }

  void round() {
    const c10::AutoGradMode with_grad(true);
    const double begin = now_seconds();
    const at::Tensor y = attention_core(qkv_, call_).value;
    wait_for(y);
    const double middle = now_seconds();
    const auto gradients = torch::autograd::grad({y}, {qkv_}, {dy_});
    wait_for(gradients[0]);
    forward_.push_back(middle - begin);
    backward_.push_back(now_seconds() - middle);
  }

  AttentionSpeed speed(Communicator& ranks) const {
    return {static_cast<double>(qkv_.size(1)), mean_of_ranks(flops_ / median(forward_), ranks),
            mean_of_ranks(2.5 * flops_ / median(backward_), ranks)};
  }

 private:
  CoreCall call_;
  at::Tensor qkv_, dy_;
  double flops_ = 0;
  std::vector<double> forward_, backward_;
};

// Two norms with the sums before them, and the activation.
class TimedElements {
 public:
  TimedElements(const RunSpec& spec, at::Device device)
      : gated_(traits_of(spec.model.family).feed_forward == FeedForward::Gated) {
    const int64_t n = int64_t{spec.train.microbatch} * spec.model.context, h = spec.model.width;
    const int64_t f = ffn_width(spec.model) / spec.mesh.tensor;
    const auto options = at::TensorOptions(scalar_type(spec.train.dtype)).device(device);
    x_nh_ = at::full({n, h}, 0.5, options);
    norm_ = {gated_ ? kernels::NormKind::Rms : kernels::NormKind::Layer, at::full({h}, 1, options),
             gated_ ? at::Tensor() : at::full({h}, 0, options)};
    bias_f_ = at::full({f}, 0.1, options);
    inner_ = at::full({n, gated_ ? 2 * f : f}, 0.1, options);
    dy_nf_ = at::full({n, f}, 0.1, options);
    const double elements = static_cast<double>(n) * static_cast<double>(22 * h + (gated_ ? 8 : 5) * f);
    bytes_ = elements * static_cast<double>(x_nh_.element_size());
  }

  void round() {
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
    inner_.fill_(0.1);  // the gradient of a gradient of a gradient soon is no number
  }

  CopySpeed speed(Communicator& ranks) const {
    return {static_cast<double>(x_nh_.nbytes()), mean_of_ranks(bytes_ / median(seconds_), ranks)};
  }

 private:
  bool gated_;
  at::Tensor x_nh_, bias_f_, inner_, dy_nf_;
  kernels::NormParams norm_;
  double bytes_ = 0;
  std::vector<double> seconds_;
};

template <class Call>
void time_into(double& seconds, const Call& call) {
  const double begin = now_seconds();
  call();
  seconds += now_seconds() - begin;
}

class TimedBlock {
 public:
  TimedBlock(const RunSpec& spec, at::Device device, Communicator& ranks)
      : layers_(layers_of(spec, device)), attention_(spec, device), elements_(spec, device), ranks_(ranks) {
    const at::ScalarType type = scalar_type(spec.train.dtype);
    hidden_nh_ = unaccounted({int64_t{spec.train.microbatch} * spec.model.context, spec.model.width}, type, device);
    hidden_nh_.fill_(0);
  }

  // Returns its seconds.
  double round() {
    return seconds_of([] {});
  }
  // With a sum over the ranks wherever tensor ranks have one.
  double round_in_step() {
    return seconds_of([this] { ranks_.all_reduce(hidden_nh_, ReduceOp::Sum).wait_host(); });
  }

  const std::vector<TimedLinear>& layers() const { return layers_; }
  const TimedAttention& attention() const { return attention_; }
  const TimedElements& elements() const { return elements_; }

 private:
  template <class Sum>
  double seconds_of(const Sum& sum) {
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

  std::vector<TimedLinear> layers_;
  TimedAttention attention_;
  TimedElements elements_;
  at::Tensor hidden_nh_;
  Communicator& ranks_;
};

// As many on every rank: what the slowest one's first suggests.
int num_rounds(double seconds, double budget, Communicator& ranks) {
  return std::clamp(static_cast<int>(budget / all_reduced(seconds, ReduceOp::Max, ranks)), kFewestRounds, kMostRounds);
}

template <class Round>
void repeat(const Round& round, double budget, Communicator& ranks) {
  const double begin = now_seconds();
  for (int i = 0; i < kWarmUps; ++i) round();
  const int rounds = num_rounds((now_seconds() - begin) / kWarmUps, budget, ranks);
  for (int i = 0; i < rounds; ++i) round();
}

// Layers of the same size stand for one, as fast as both together.
std::vector<ProductSpeed> product_speeds(const std::vector<TimedLinear>& layers, Communicator& ranks) {
  std::vector<std::pair<double, std::vector<double>>> sizes;  // operations, medians
  for (const TimedLinear& layer : layers) {
    auto size = std::ranges::find(sizes, layer.flops(), &std::pair<double, std::vector<double>>::first);
    if (size == sizes.end()) size = sizes.insert(size, {layer.flops(), {}});
    size->second.push_back(median(layer.all_seconds));
  }
  std::ranges::sort(sizes);
  std::vector<ProductSpeed> speeds;
  for (const auto& [flops, medians] : sizes) {
    double seconds = 0;
    for (const double one : medians) seconds += one;
    const double of_pass = 3 * flops * static_cast<double>(medians.size());
    speeds.push_back({flops, mean_of_ranks(of_pass / seconds, ranks)});
  }
  return speeds;
}

}  // namespace

BlockSpeed measured_block(const RunSpec& spec, at::Device device, Communicator& ranks) {
  const c10::AutoGradMode no_grad(false);
  TimedBlock block(spec, device, ranks);
  repeat([&] { block.round(); }, kBudget, ranks);
  return {product_speeds(block.layers(), ranks), block.attention().speed(ranks), block.elements().speed(ranks)};
}

std::vector<BlockSpeed> measured_blocks(DType dtype, at::Device device, Communicator& ranks) {
  std::vector<BlockSpeed> speeds;
  for (const StandIn& block : kStandIns) {
    const double begin = now_seconds();
    speeds.push_back(measured_block(spec_of(block, dtype), device, ranks));
    const double round = (now_seconds() - begin) / (kWarmUps + kFewestRounds);
    if (all_reduced(round, ReduceOp::Max, ranks) > kTooLong) break;
  }
  return speeds;
}

double measured_skew(const RunSpec& spec, at::Device device, Communicator& ranks) {
  const c10::AutoGradMode no_grad(false);
  TimedBlock block(spec, device, ranks);
  double apart = 0, in_step = 0;  // in turns, since hosts change their speed
  repeat([&] { apart += block.round(), in_step += block.round_in_step(); }, kBudget, ranks);
  return std::max(0.0, mean_of_ranks(in_step, ranks) / mean_of_ranks(apart, ranks) - 1);
}

}  // namespace braid
