// Every optimizer, ten steps, against PyTorch's or against the published algorithm in a few lines, in float64.
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sign.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <functional>

#include "braid/base/errors.h"
#include "braid/optim/muon.h"
#include "braid/optim/optimizer.h"
#include "braid/optim/parameter_groups.h"
#include "braid/spec/parameter_groups.h"

namespace braid::optim::optimizers_test {
namespace {

constexpr int kSteps = 10;
constexpr double kScale = 0.5;  // of the gradients

std::vector<layout::BlockSpec> some_model() {
  const model::Init init{model::Init::Kind::Normal, 0.5};
  layout::ParamSpec wide{"wide", mesh::replicated({12, 40}), init}, tall{"tall", mesh::replicated({40, 30}), init};
  wide.linear = tall.linear = model::LinearMap::Yes;
  return {{"a",
           {wide,
            {"table", mesh::replicated({30, 20}), init},
            {"vector", mesh::replicated({50}), init, model::WeightDecay::No}}},
          {"b", {tall}}};
}

double rate(int step) { return 0.02 / (step + 1); }

// One parameter of the reference.
struct Twin {
  at::Tensor weight;  // a leaf
  double decay = 0;
  bool is_matrix = false;
};
// A step of the reference on the gradients that its weights have, scaled already.
using Reference = std::function<void(std::vector<Twin>& twins, double lr)>;

std::vector<Twin> twins_of(const param::ParamStore& store, const OptimizerSpec& spec) {
  std::vector<Twin> twins;
  for (const param::Parameter& param : store.params()) {
    twins.push_back({param.data.detach().clone().requires_grad_(true),
                     param.decay == model::WeightDecay::Yes ? spec.weight_decay : 0,
                     param.linear == model::LinearMap::Yes});
  }
  return twins;
}

void expect_reference(const OptimizerSpec& spec, const std::function<Reference(std::vector<Twin>&)>& make) {
  at::manual_seed(3);
  param::ParamStore store(some_model(), Reduction::Fast, at::kDouble, 5);
  const auto optimizer = make_optimizer(spec, store);
  std::vector<Twin> twins = twins_of(store, spec);
  const Reference reference = make(twins);
  for (int step = 0; step < kSteps; ++step) {
    for (size_t p = 0; p < twins.size(); ++p) {
      const at::Tensor grad = at::randn(twins[p].weight.sizes(), at::kDouble);
      store.params()[p].main_grad.copy_(grad);
      twins[p].weight.mutable_grad() = grad * kScale;
    }
    optimizer->step({rate(step), kScale});
    const c10::AutoGradMode no_grad(false);
    reference(twins, rate(step));
  }
  for (size_t p = 0; p < twins.size(); ++p) {
    const at::Tensor moved = store.params()[p].data.detach() - twins[p].weight.detach();
    EXPECT_LT(moved.abs().max().item<double>(), 1e-13) << spec.kind << " " << store.params()[p].name;
  }
}

// PyTorch's, with a group for each decay.
template <class Torch, class Options>
std::function<Reference(std::vector<Twin>&)> torch_optimizer(const Options& options) {
  return [options](std::vector<Twin>& twins) -> Reference {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (Twin& twin : twins) {
      auto own = std::make_unique<Options>(options);
      own->weight_decay(twin.decay);
      groups.emplace_back(std::vector<at::Tensor>{twin.weight}, std::move(own));
    }
    const auto optimizer = std::make_shared<Torch>(std::move(groups), options);
    return [optimizer](std::vector<Twin>&, double lr) {
      for (auto& group : optimizer->param_groups()) group.options().set_lr(lr);
      const c10::AutoGradMode grad(true);
      optimizer->step();
    };
  };
}

TEST(Optimizers, SgdIsPyTorchs) {
  const OptimizerSpec spec{.kind = OptimizerKind::Sgd, .momentum = 0.9, .weight_decay = 0.1};
  expect_reference(spec, torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9)));
  const OptimizerSpec plain{.kind = OptimizerKind::Sgd, .momentum = 0, .weight_decay = 0.1};
  expect_reference(plain, torch_optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1)));
}

TEST(Optimizers, AdagradIsPyTorchs) {
  const OptimizerSpec spec{.kind = OptimizerKind::Adagrad, .eps = 1e-8, .weight_decay = 0.1};
  expect_reference(spec, torch_optimizer<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1).eps(1e-8)));
}

TEST(Optimizers, AdamWIsPyTorchs) {
  const OptimizerSpec spec{.beta1 = 0.8, .beta2 = 0.97, .eps = 1e-6, .weight_decay = 0.1};
  expect_reference(spec,
                   torch_optimizer<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1).betas({0.8, 0.97}).eps(1e-6)));
}

// Chen et al. (2023), algorithm 2.
TEST(Optimizers, LionIsThePublishedOne) {
  const OptimizerSpec spec{.kind = OptimizerKind::Lion, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
  expect_reference(spec, [](std::vector<Twin>& twins) -> Reference {
    std::vector<at::Tensor> momentum;
    for (const Twin& twin : twins) momentum.push_back(at::zeros_like(twin.weight));
    return [momentum](std::vector<Twin>& all, double lr) {
      for (size_t p = 0; p < all.size(); ++p) {
        const at::Tensor grad = all[p].weight.grad(), &m = momentum[p];
        const at::Tensor direction = at::sign(0.9 * m + 0.1 * grad) + all[p].decay * all[p].weight;
        m.copy_(0.99 * m + 0.01 * grad);
        all[p].weight.sub_(lr * direction);
      }
    };
  });
}

// Jordan et al. (2024), with the step's size of Liu et al. (2025).
at::Tensor newton_schulz(at::Tensor x) {
  x = x / (x.norm() + 1e-7);
  for (int i = 0; i < 5; ++i) {
    const at::Tensor a = x.matmul(x.t());
    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a.matmul(a)).matmul(x);
  }
  return x;
}

TEST(Optimizers, MuonIsThePublishedOneAndAdamWForTheRest) {
  const OptimizerSpec spec{
      .kind = OptimizerKind::Muon, .momentum = 0.9, .beta1 = 0.8, .beta2 = 0.97, .weight_decay = 0.1};
  expect_reference(spec, [](std::vector<Twin>& twins) -> Reference {
    std::vector<Twin> rest;
    std::vector<at::Tensor> momentum;
    for (const Twin& twin : twins) {
      momentum.push_back(at::zeros_like(twin.weight));
      if (!twin.is_matrix) rest.push_back(twin);
    }
    EXPECT_EQ(rest.size(), 2u);
    const auto options = torch::optim::AdamWOptions(0.1).betas({0.8, 0.97}).eps(1e-8);
    const Reference adamw = torch_optimizer<torch::optim::AdamW>(options)(rest);
    return [momentum, adamw](std::vector<Twin>& all, double lr) {
      for (size_t p = 0; p < all.size(); ++p) {
        if (!all[p].is_matrix) continue;
        const at::Tensor grad = all[p].weight.grad(), &m = momentum[p];
        m.copy_(0.9 * m + 0.1 * grad);
        const at::Tensor nesterov = 0.9 * m + 0.1 * grad;
        const bool tall = grad.size(0) > grad.size(1);
        const at::Tensor update = tall ? newton_schulz(nesterov.t()).t() : newton_schulz(nesterov);
        const double size = 0.2 * std::sqrt(static_cast<double>(std::max(grad.size(0), grad.size(1))));
        all[p].weight.mul_(1 - lr * all[p].decay).sub_(lr * size * update);
      }
      adamw(all, lr);
    };
  });
}

TEST(Optimizers, OrthogonalMeansSingularValuesNearOne) {
  at::manual_seed(1);
  for (const auto& [rows, columns] : {std::pair(20, 30), {30, 20}, {25, 25}}) {
    const at::Tensor values = at::linalg_svdvals(orthogonalized(at::randn({rows, columns}, at::kDouble) * 1e-6));
    EXPECT_LT(values.max().item<double>(), 1.25);
    EXPECT_GT(values.median().item<double>(), 0.65);
  }
  EXPECT_EQ(orthogonalized(at::zeros({3, 4})).abs().max().item<float>(), 0);
}

// The bytes that an optimizer keeps for each of some_model()'s 2,330 elements, 480 and 1,200 of which are in matrices.
TEST(Optimizers, KeepWhatTheyNeed) {
  param::ParamStore store(some_model(), Reduction::Fast, at::kFloat, 5);
  const auto kept = [&](const OptimizerSpec& spec) {
    const auto optimizer = make_optimizer(spec, store);
    std::vector<std::pair<std::string, int64_t>> states;
    for (const OptimizerState& state : optimizer->states()) {
      states.emplace_back(state.name, state.flat.numel() / param::ParamStore::kAlign);
    }
    return states;
  };
  using Kept = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(kept({}), (Kept{{"adamw.first_moment", 5}, {"adamw.second_moment", 5}}));
  EXPECT_EQ(kept({.kind = OptimizerKind::Sgd}), (Kept{{"sgd.momentum", 5}}));
  EXPECT_EQ(kept({.kind = OptimizerKind::Sgd, .momentum = 0}), Kept{});
  EXPECT_EQ(kept({.kind = OptimizerKind::Adagrad}), (Kept{{"adagrad.squares", 5}}));
  EXPECT_EQ(kept({.kind = OptimizerKind::Lion}), (Kept{{"lion.momentum", 5}}));
  EXPECT_EQ(kept({.kind = OptimizerKind::Muon}),
            (Kept{{"muon.momentum", 3}, {"adamw.first_moment", 2}, {"adamw.second_moment", 2}}));
}

// 16-bit data over float32 masters: the masters of float32 training, bit for bit, and data that is the masters rounded.
TEST(Optimizers, LowPrecisionDataIsTheMastersRounded) {
  using enum OptimizerKind;
  for (const auto kind : {Sgd, Adagrad, Lion, Muon}) {
    param::ParamStore full(some_model(), Reduction::Fast, at::kFloat, 5),
        low(some_model(), Reduction::Fast, at::kHalf, 5);
    const auto of_full = make_optimizer({.kind = kind}, full), of_low = make_optimizer({.kind = kind}, low);
    for (int step = 0; step < 2; ++step) {
      for (size_t p = 0; p < full.params().size(); ++p) {
        const at::Tensor grad = at::randn(full.params()[p].placement.local_shape, at::kFloat);
        full.params()[p].main_grad.copy_(grad);
        low.params()[p].main_grad.copy_(grad);
      }
      of_full->step({0.01, 1});
      of_low->step({0.01, 1});
    }
    EXPECT_TRUE(low.flat_master().equal(full.flat_master())) << kind;
    EXPECT_TRUE(low.flat_data().equal(full.flat_data().to(at::kHalf))) << kind;
  }
}

// With a gradient of zero there is the decay alone, and with neither nothing moves.
TEST(Optimizers, GroupsHaveRatesOfTheirOwn) {
  param::ParamStore store(some_model(), Reduction::Fast, at::kDouble, 5);
  OptimizerSpec spec{.weight_decay = 0.5};
  spec.groups = {{.match = "w*", .lr_scale = 0.5}, {.match = "*ide"}, {.match = "vec?or", .weight_decay = 0.25}};
  const auto before = store.flat_data().detach().clone();
  make_optimizer(spec, store)->step({.lr = 0.1});
  const std::map<std::string, double> keeps = {
      {"wide", 1 - 0.05 * 0.5}, {"table", 1 - 0.1 * 0.5}, {"vector", 1 - 0.1 * 0.25}, {"tall", 1 - 0.1 * 0.5}};
  for (const param::Parameter& param : store.params()) {
    const at::Tensor was = before.narrow(0, param.offset, param.num_elements()).view(param.placement.local_shape);
    EXPECT_TRUE(param.data.detach().equal(was * keeps.at(param.name))) << param.name;
  }
  EXPECT_TRUE(spec::matches({.match = "*.bias"}, "blocks.0.mlp.up.bias"));
  EXPECT_FALSE(spec::matches({.match = "*.bias"}, "bias"));
}

// The gradients are equal, so what is moved tells the rate: of an element and of a matrix.
TEST(Optimizers, GroupsScaleTheRateOfEveryKind) {
  using enum OptimizerKind;
  for (const auto kind : {AdamW, Sgd, Adagrad, Lion, Muon}) {
    const auto moved = [&](double lr_scale) {
      param::ParamStore store(some_model(), Reduction::Fast, at::kDouble, 5);
      for (param::Parameter& param : store.params()) param.main_grad.fill_(0.25);
      const auto before = store.flat_data().detach().clone();
      OptimizerSpec spec{.kind = kind, .weight_decay = 0};
      spec.groups = {{.match = "*", .lr_scale = lr_scale}};
      make_optimizer(spec, store)->step({.lr = 0.1});
      return store.flat_data().detach() - before;
    };
    EXPECT_GT(moved(1).abs().max().item<double>(), 1e-3) << kind;
    EXPECT_LT((moved(1) * 0.5 - moved(0.5)).abs().max().item<double>(), 1e-15) << kind;
  }
}

}  // namespace
}  // namespace braid::optim::optimizers_test
