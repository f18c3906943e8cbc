// Serial runs with frozen parameters against the same model in LibTorch's own ops, with requires_grad(false) and
// torch::optim::AdamW, in float64.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/data/sampler.h"
#include "braid/optim/grad_norm.h"
#include "braid/optim/lr_schedule.h"
#include "tests/train/frozen_runs.h"

namespace braid::train::frozen_reference_test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

// GPT-2 without dropout.
at::Tensor loss_of(const ModelSpec& model, const Tensors& p, const at::Tensor& tokens_bt) {
  const int64_t t = model.context, b = tokens_bt.size(0);
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, p.at(name + ".weight"), p.at(name + ".bias"));
  };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {x.size(-1)}, p.at(name + ".weight"), p.at(name + ".bias"), model.norm_eps);
  };
  at::Tensor x = at::embedding(p.at("wte.weight"), tokens_bt.narrow(1, 0, t)) + p.at("wpe.weight");
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string block = cat("blocks.", layer, '.');
    const at::Tensor qkv = linear(norm(x, block + "ln_1"), block + "attention.qkv");
    const auto heads = qkv.view({b, t, 3, model.heads, -1}).permute({2, 0, 3, 1, 4});
    const at::Tensor seen = at::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0.0, true);
    x = x + linear(seen.transpose(1, 2).flatten(2), block + "attention.projection");
    const at::Tensor inner = at::gelu(linear(norm(x, block + "ln_2"), block + "mlp.up"), "tanh");
    x = x + linear(inner, block + "mlp.down");
  }
  const bool tied = model.output_weights == OutputWeights::Tied;
  const at::Tensor logits = at::linear(norm(x, "ln_f"), p.at(tied ? "wte.weight" : "head.weight"));
  return at::cross_entropy_loss(logits.flatten(0, 1), tokens_bt.narrow(1, 1, t).flatten());
}

class Reference {
 public:
  // Trains the tensors of `params` that no group freezes.
  Reference(const RunSpec& spec, Tensors params)
      : spec_(spec),
        params_(std::move(params)),
        corpus_(tiny_corpus()),
        sampler_(corpus_.train, spec.model.context, stream_key(spec.train.seed, "samples")) {
    std::vector<at::Tensor> decayed, others;
    for (auto& [name, param] : params_) {
      param.requires_grad_(!spec::is_frozen(spec.optimizer, name));
      if (param.requires_grad()) (param.dim() > 1 ? decayed : others).push_back(param);
    }
    torch::optim::AdamWOptions options(spec.optimizer.lr);
    options.betas({spec.optimizer.beta1, spec.optimizer.beta2}).eps(spec.optimizer.eps);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(
        decayed, std::make_unique<torch::optim::AdamWOptions>(options.weight_decay(spec.optimizer.weight_decay)));
    groups.emplace_back(others, std::make_unique<torch::optim::AdamWOptions>(options.weight_decay(0)));
    optimizer_.emplace(std::move(groups), options);
  }

  void step(LayoutResult& result) {
    const int number = static_cast<int>(result.losses.size());
    optimizer_->zero_grad();
    const at::Tensor loss = loss_of(spec_.model, params_, tokens(number));
    loss.backward();
    double squares = 0;
    for (const auto& [name, param] : params_) {
      if (!param.grad().defined()) continue;
      squares += param.grad().square().sum().item<double>();
      if (number == 0) result.first_gradients[name] = param.grad().clone();
    }
    result.losses.push_back(loss.item<double>());
    result.grad_norms.push_back(std::sqrt(squares));
    const double clip = optim::clip_scale(std::sqrt(squares), spec_.optimizer.clip_norm);
    for (const auto& [name, param] : params_) {
      if (param.grad().defined()) param.mutable_grad().mul_(clip);
    }
    const double rate = optim::learning_rate(spec_.optimizer, number, spec_.train.steps);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(rate);
    optimizer_->step();
    for (const auto& [name, param] : params_) result.params[name] = param.detach();
  }

 private:
  at::Tensor tokens(int step) const {
    at::Tensor tokens_bt = at::empty({spec_.train.batch, spec_.model.context + 1}, at::kLong);
    for (int64_t row = 0; row < tokens_bt.size(0); ++row) {
      const at::Tensor to = tokens_bt[row];
      sampler_.read(step * tokens_bt.size(0) + row, {to.data_ptr<int64_t>(), static_cast<size_t>(to.numel())});
    }
    return tokens_bt;
  }

  const RunSpec& spec_;
  Tensors params_;
  data::Corpus corpus_;
  data::Sampler sampler_;
  std::optional<torch::optim::AdamW> optimizer_;
};

TEST(FrozenReference, IsTorchWithoutTheirGradients) {
  for (const FrozenPattern& pattern : frozen_patterns()) {
    SCOPED_TRACE(pattern.name);
    RunSpec spec = frozen_run(pattern);
    spec.train.steps = 3;
    Tensors params = initial_weights(spec);
    LayoutResult want;
    Reference reference(spec, params);
    for (int step = 0; step < spec.train.steps; ++step) reference.step(want);
    const LayoutResult got = train_layout(spec);
    expect_near(got, want, rounding_of(DType::Float64));
    for (size_t step = 0; step < want.grad_norms.size(); ++step) {
      EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-9 * want.grad_norms[step]);
    }
  }
}

}  // namespace
}  // namespace braid::train::frozen_reference_test
