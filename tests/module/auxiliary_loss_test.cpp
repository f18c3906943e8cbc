// Losses that layers contribute: a pipeline's gradients are those of one rank that adds them to its loss.
#include "braid/module/auxiliary_loss.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::auxiliary_loss_test {
namespace {

using torch::nn::Linear;

struct GateImpl : torch::nn::Module {
  explicit GateImpl(double w) : weight(w) { fc = register_module("fc", Linear(6, 6)); }
  at::Tensor forward(at::Tensor x) {
    const at::Tensor gate = fc(x);
    contribute_auxiliary_loss(gate.square().sum(1).mean(), weight);
    contribute_auxiliary_loss(gate.sin().mean());
    return x * gate.sigmoid();
  }
  Linear fc{nullptr};
  double weight;
};
TORCH_MODULE(Gate);

struct Model {
  Gate first{0.3}, second{0.7};
  Linear middle{6, 6}, head{6, 2};

  Model() {
    torch::manual_seed(21);
    for (auto& parameter : parameters()) parameter.set_data(at::randn(parameter.sizes(), at::kDouble));
  }
  Tensors parameters() const {
    Gate gate0 = first, gate1 = second;
    Linear linear0 = middle, linear1 = head;
    Tensors all;
    for (torch::nn::Module* module :
         std::initializer_list<torch::nn::Module*>{gate0.get(), linear0.get(), gate1.get(), linear1.get()}) {
      for (auto& parameter : module->parameters()) all.push_back(parameter);
    }
    return all;
  }
  LayerList layers() const {
    LayerList list;
    list.add("first", first).add("middle", middle).add("second", second).add("head", head);
    return list;
  }
};

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().sum(1).mean();
}

struct Numbers {
  double loss = 0, auxiliary = 0;
  Tensors gradients;
};

Numbers on_one_rank(const at::Tensor& x, const at::Tensor& y) {
  const Model model;
  const AuxiliaryLossScope scope;
  const at::Tensor loss =
      loss_of(Linear(model.head)(Gate(model.second)(Linear(model.middle)(Gate(model.first)(x)))), y);
  (loss + scope.total()).backward();
  Numbers numbers{loss.item<double>(), scope.total().item<double>()};
  for (const auto& parameter : model.parameters()) numbers.gradients.push_back(parameter.grad());
  return numbers;
}

struct Input {
  at::Tensor x, y;
};

Input input_of(int64_t rows) {
  torch::manual_seed(4);
  return {at::randn({rows, 6}, at::kDouble), at::randn({rows, 2}, at::kDouble)};
}

void expect_same(const Numbers& found, const Numbers& expected) {
  EXPECT_NEAR(found.loss, expected.loss, 1e-12);
  EXPECT_NEAR(found.auxiliary, expected.auxiliary, 1e-12);
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    EXPECT_TRUE(at::allclose(found.gradients[i], expected.gradients[i], 1e-11, 1e-12)) << i;
  }
}

Numbers piped(const Schedule& schedule, const Input& input) {
  const Model model;
  Numbers numbers;
  std::vector<double> auxiliary(static_cast<size_t>(schedule.num_ranks()));
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    ModulePipeline pipeline(model.layers(), pipe, {.schedule = schedule, .loss = loss_of});
    const auto loss = pipeline.step({input.x}, {input.y});
    if (loss) numbers.loss = *loss;
    auxiliary[static_cast<size_t>(pipe.rank())] = pipeline.auxiliary_loss();
    pipeline.forward({input.x});  // nothing is contributed without gradients
  });
  for (const double part : auxiliary) numbers.auxiliary += part;
  for (const auto& parameter : model.parameters()) numbers.gradients.push_back(parameter.grad());
  return numbers;
}

TEST(AuxiliaryLoss, EveryScheduleHasTheGradientsOfOneRank) {
  const Input input = input_of(14);  // of unequal microbatches
  const Numbers expected = on_one_rank(input.x, input.y);
  int played = 0;
  for (const auto& traits : schedule_traits()) {
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(cat(traits.name, " on ", ranks));
      Schedule schedule;
      try {
        schedule = make_schedule(traits.name, {.ranks = ranks, .microbatches = 4});
      } catch (const ConfigError&) {
        continue;
      }
      if (schedule.mirrored() || traits.asynchronous() || schedule.num_stages > 4) continue;
      expect_same(piped(schedule, input), expected);
      ++played;
    }
  }
  EXPECT_GE(played, 12);
}

TEST(AuxiliaryLoss, DataRanksAverageItAsTheLoss) {
  const Input input = input_of(15);
  const Numbers expected = on_one_rank(input.x, input.y);
  const std::vector<Model> replicas(2);
  Numbers numbers;
  std::vector<double> auxiliary(4);
  run_ranks(4, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe");
    const auto data = world.split(2 + world.rank() % 2, 0, "data");
    const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 3});
    ModulePipeline pipeline(replicas[static_cast<size_t>(replica)].layers(), *pipe,
                            {.schedule = schedule, .loss = loss_of, .data = data.get()});
    const int64_t begin = replica == 0 ? 0 : 9, rows = replica == 0 ? 9 : 6;
    const auto loss = pipeline.step({input.x.narrow(0, begin, rows)}, {input.y.narrow(0, begin, rows)});
    if (loss && replica == 0) numbers.loss = *loss;
    auxiliary[static_cast<size_t>(world.rank())] = pipeline.auxiliary_loss();
  });
  EXPECT_EQ(auxiliary[0], auxiliary[2]);
  EXPECT_EQ(auxiliary[1], auxiliary[3]);
  numbers.auxiliary = auxiliary[0] + auxiliary[1];
  for (const auto& parameter : replicas[1].parameters()) numbers.gradients.push_back(parameter.grad());
  expect_same(numbers, expected);
}

TEST(AuxiliaryLoss, ScopesNestAndALossThatNobodyCollectsIsRefused) {
  const at::Tensor a = at::ones({1}, at::kDouble).requires_grad_(true);
  contribute_auxiliary_loss(a.detach());  // an evaluation
  EXPECT_THROW(contribute_auxiliary_loss(a), ConfigError);
  AuxiliaryLossScope outer;
  contribute_auxiliary_loss(a, 2);
  {
    const AuxiliaryLossScope inner;
    EXPECT_FALSE(inner.total().defined());
    contribute_auxiliary_loss(a * 5);
    EXPECT_EQ(inner.total().item<double>(), 5);
  }
  contribute_auxiliary_loss(a * 3);
  EXPECT_EQ(outer.total().item<double>(), 5);
  EXPECT_THROW(contribute_auxiliary_loss(at::ones({2})), ConfigError);
  EXPECT_THROW(contribute_auxiliary_loss(at::Tensor()), ConfigError);
}

TEST(AuxiliaryLoss, ACountedLossIsRefusedBesideIt) {
  const Model model;
  const Input input = input_of(4);
  run_ranks(1, [&](Communicator& pipe) {
    const Schedule schedule = make_schedule("1f1b", {.ranks = 1, .microbatches = 2});
    ModulePipeline pipeline(model.layers(), pipe, {.schedule = schedule, .loss = torch::nn::CrossEntropyLoss()});
    EXPECT_THROW(pipeline.step({input.x}, {at::zeros({4}, at::kLong)}), ConfigError);
  });
}

}  // namespace
}  // namespace braid::modules::auxiliary_loss_test
