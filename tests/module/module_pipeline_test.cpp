// User modules in pipelines compute what one rank computes.
#include "braid/module/module_pipeline.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/schedule/generators.h"
#include "tests/support/split_backward.h"

namespace braid::modules::module_pipeline_test {
namespace {

using torch::nn::Linear;

struct MixImpl : torch::nn::Module {
  Linear fc{nullptr};
  MixImpl() { fc = register_module("fc", Linear(8, 8)); }
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(at::Tensor a, at::Tensor b, at::Tensor index) {
    return {fc(a) * b, b, index};
  }
};
TORCH_MODULE(Mix);

struct GatherImpl : torch::nn::Module {
  torch::nn::Embedding table{nullptr};
  GatherImpl() { table = register_module("table", torch::nn::Embedding(8, 8)); }
  at::Tensor forward(at::Tensor a, at::Tensor b, at::Tensor index) { return a + b + table(index); }
};
TORCH_MODULE(Gather);

// Eight layers with everything that may travel: tuples, an integer tensor, skips over several layers.
struct Model {
  Linear fc0{5, 8}, fc4{8, 8}, head{8, 3};
  Mix mix;
  Gather gather;

  std::vector<torch::nn::Module*> modules() { return {fc0.get(), mix.get(), gather.get(), fc4.get(), head.get()}; }

  explicit Model(uint64_t seed) {
    torch::manual_seed(seed);
    for (auto* module : modules()) {
      module->to(at::kDouble);
      for (auto& parameter : module->parameters()) parameter.data().normal_(0, 0.5);
    }
  }
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> spread(at::Tensor x) {
    return {x.tanh(), x.sin(), x.detach().argmax(1)};
  }
  LayerList layers() const {
    const auto keep = [gather = gather](at::Tensor a, at::Tensor b, at::Tensor index) mutable {
      const at::Tensor y = gather(a, b, index);
      return std::pair(y, y);
    };
    LayerList list;
    list.add("fc0", fc0).add("spread", spread).add("mix", mix);
    list.add("gather", keep, {.stash = {"y"}, .parameters = gather->parameters()});
    list.add("fc4", fc4).add("act", torch::nn::Tanh());
    list.add("join", [](at::Tensor x, at::Tensor y) { return x + y; }, {.pop = {"y"}}).add("head", head);
    return list;
  }
  at::Tensor serial(const at::Tensor& x) {
    auto [a, b, index] = spread(fc0(x));
    std::tie(a, b, index) = mix(a, b, index);
    const at::Tensor y = gather(a, b, index);
    return head(fc4(y).tanh() + y);
  }
  Tensors parameters() {
    Tensors all;
    for (auto* module : modules()) {
      for (auto& parameter : module->parameters()) all.push_back(parameter);
    }
    return all;
  }
};

struct Batch {
  at::Tensor x, y;
};

std::vector<Batch> batches(int64_t rows) {
  torch::manual_seed(3);
  std::vector<Batch> made;
  for (int step = 0; step < 3; ++step) {
    made.push_back({at::randn({rows, 5}, at::kDouble), at::randn({rows, 3}, at::kDouble)});
  }
  return made;
}

// The mean over rows of a loss that is no mean over columns, so that weights of microbatches matter.
at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().sum(1).mean();
}

struct Training {
  std::vector<double> losses;
  std::vector<Tensors> gradients;  // by step, in the order of Model::parameters
  Tensors parameters;
};

Tensors grads_of(const Tensors& parameters) {
  Tensors grads;
  for (const auto& parameter : parameters)
    grads.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  return grads;
}

Training train_serially(int64_t rows) {
  Model model(7);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  Training training;
  for (const Batch& batch : batches(rows)) {
    optimizer.zero_grad();
    const at::Tensor loss = loss_of(model.serial(batch.x), batch.y);
    loss.backward();
    training.losses.push_back(loss.item<double>());
    training.gradients.push_back(grads_of(model.parameters()));
    optimizer.step();
  }
  training.parameters = model.parameters();
  return training;
}

Training train_piped(const Schedule& schedule, int64_t rows, const std::vector<int>& balance = {}) {
  Model model(7);
  const LayerList layers = model.layers();
  const auto data = batches(rows);
  Training training;
  training.parameters = model.parameters();
  training.losses.resize(data.size());
  training.gradients.assign(data.size(), Tensors(training.parameters.size()));
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe, {.schedule = schedule, .loss = loss_of, .balance = balance});
    torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (size_t step = 0; step < data.size(); ++step) {
      optimizer.zero_grad();
      const auto loss = pipeline.step({data[step].x}, {data[step].y});
      EXPECT_EQ(loss.has_value(), schedule.stage_rank.back() == pipe.rank());
      if (loss) training.losses[step] = *loss;
      for (size_t i = 0; i < training.parameters.size(); ++i) {
        for (const auto& own : pipeline.parameters()) {
          if (own.is_same(training.parameters[i])) training.gradients[step][i] = own.grad().clone();
        }
      }
      optimizer.step();
    }
  });
  return training;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() ? (a - b).abs().max().item<double>() : 1e300;
}

void expect_same(const Training& found, const Training& expected) {
  for (size_t step = 0; step < expected.losses.size(); ++step) {
    EXPECT_NEAR(found.losses[step], expected.losses[step], 1e-10);
    for (size_t i = 0; i < expected.parameters.size(); ++i) {
      EXPECT_LT(distance(found.gradients[step][i], expected.gradients[step][i]), 1e-10) << "step " << step << " #" << i;
    }
  }
  for (size_t i = 0; i < expected.parameters.size(); ++i) {
    EXPECT_LT(distance(found.parameters[i], expected.parameters[i]), 1e-10) << "#" << i;
  }
}

TEST(ModulePipeline, EverySynchronousScheduleTrainsLikeOneRank) {
  const Training expected = train_serially(12);
  int played = 0;
  for (const auto& traits : schedule_traits()) {
    for (const int ranks : {1, 2, 3, 4}) {
      SCOPED_TRACE(cat(traits.name, " on ", ranks));
      Schedule schedule;
      try {
        schedule = make_schedule(traits.name, {.ranks = ranks, .microbatches = 12});
      } catch (const ConfigError&) {
        continue;  // not for this number of ranks
      }
      if (schedule.mirrored() || traits.asynchronous()) {
        EXPECT_THROW(train_piped(schedule, 12), ConfigError);
      } else {
        expect_same(train_piped(schedule, 12), expected);
        ++played;
      }
    }
  }
  EXPECT_GE(played, 28);
}

TEST(ModulePipeline, ASplitBackwardRunsWholeAtItsFirstHalf) {
  expect_same(train_piped(split_backward(schedule::one_f_one_b(3, 4)), 12), train_serially(12));
}

TEST(ModulePipeline, UnevenMicrobatchesWeighByTheirRows) {
  expect_same(train_piped(schedule::one_f_one_b(2, 4), 10), train_serially(10));
}

TEST(ModulePipeline, AnyCutGivesTheSame) {
  const Training expected = train_serially(8);
  expect_same(train_piped(schedule::gpipe(3, 4), 8, {1, 1, 6}), expected);
  expect_same(train_piped(schedule::gpipe(3, 4), 8, {5, 1, 2}), expected);
  expect_same(train_piped(schedule::gpipe(8, 2), 8), expected);  // the skip passes three stages
}

// Data ranks with other weights and other numbers of rows, gradients of two steps accumulated.
TEST(ModulePipeline, DataRanksShareTheMinibatch) {
  Model reference(7);
  const auto data = batches(20);
  for (int step = 0; step < 2; ++step) loss_of(reference.serial(data[step].x), data[step].y).backward();
  std::vector<Model> replicas{Model(7), Model(8)};
  const std::vector<LayerList> layers{replicas[0].layers(), replicas[1].layers()};
  run_ranks(4, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe");
    const auto peers = world.split(2 + world.rank() % 2, 0, "data");
    ModulePipeline pipeline(layers[replica], *pipe,
                            {.schedule = schedule::one_f_one_b(2, 3), .loss = loss_of, .data = peers.get()});
    const int64_t begin = replica == 0 ? 0 : 13, rows = replica == 0 ? 13 : 7;
    for (int step = 0; step < 2; ++step) {
      const auto loss = pipeline.step({data[step].x.narrow(0, begin, rows)}, {data[step].y.narrow(0, begin, rows)});
      if (loss) {
        EXPECT_NEAR(*loss, loss_of(reference.serial(data[step].x), data[step].y).item<double>(), 1e-10);
      }
    }
  });
  const Tensors expected = reference.parameters();
  for (auto& replica : replicas) {
    const Tensors found = replica.parameters();
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(distance(found[i].grad(), expected[i].grad()), 1e-10) << i;
  }
}

// One module in both stages of a rank: its gradient is complete after the second, and is summed over data ranks once.
TEST(ModulePipeline, AModuleTiedAcrossStagesOfOneRank) {
  Linear reference(3, 3);
  reference->to(at::kDouble);
  const at::Tensor x = batches(8)[0].y, y = batches(8)[1].y;
  loss_of(reference(reference(x).tanh()), y).backward();
  std::vector<Linear> tied{Linear(3, 3), Linear(3, 3)};
  for (auto& module : tied) {
    module->weight.set_data(reference->weight.detach().clone());
    module->bias.set_data(reference->bias.detach().clone());
  }
  run_ranks(2, [&](Communicator& data) {
    Linear module = tied[data.rank()];
    LayerList layers;
    layers.add("in", module).add("act", torch::nn::Tanh()).add("out", module);
    const auto pipe = data.split(data.rank(), 0, "pipe");
    const Schedule schedule = make_schedule("interleaved", {.ranks = 1, .microbatches = 2, .chunks = 2});
    const int64_t begin = 4 * data.rank();
    for (const ModelMemory& memory :
         {ModelMemory(), ModelMemory{.gradients = Kept::OnDisk, .folders = {testing::TempDir()}}}) {
      ModulePipeline pipeline(layers, *pipe, {.schedule = schedule, .loss = loss_of, .data = &data, .memory = memory});
      EXPECT_EQ(pipeline.parameters().size(), 2u);
      pipeline.step({x.narrow(0, begin, 4)}, {y.narrow(0, begin, 4)});
      const at::Tensor gradient = pipeline.parameters()[0].grad().flatten().narrow(0, 0, 9).view({3, 3});
      EXPECT_LT(distance(gradient, reference->weight.grad()), 1e-10);
    }
  });
}

TEST(ModulePipeline, ForwardGivesTheOutputsInOrder) {
  Model model(7);
  const LayerList layers = model.layers();
  for (const int64_t rows : {2, 10}) {  // fewer rows than microbatches, and an uneven number
    const at::Tensor x = batches(rows)[0].x;
    const at::Tensor expected = model.serial(x).detach();
    run_ranks(3, [&](Communicator& pipe) {
      ModulePipeline pipeline(layers, pipe, {.schedule = schedule::one_f_one_b(3, 4)});
      const Tensors outputs = pipeline.forward({x});
      ASSERT_EQ(outputs.size(), pipe.rank() == 2 ? 1u : 0u);
      if (!outputs.empty()) {
        EXPECT_FALSE(outputs[0].requires_grad());
        EXPECT_LT(distance(outputs[0], expected), 1e-10);
      }
    });
  }
}

TEST(LayerList, ASequentialIsItsModulesOrOneLayer) {
  torch::nn::Sequential model(
      {{"fc", torch::nn::AnyModule(Linear(2, 3))}, {"mix", torch::nn::AnyModule(torch::nn::ReLU())}});
  LayerList layers;
  layers.add(model).add("whole", torch::nn::Sequential(Mix(), Gather())).add(torch::nn::Tanh());
  std::vector<std::string> names;
  for (int i = 0; i < layers.size(); ++i) names.push_back(layers[i].name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc", "mix", "whole", "3"}));
  const at::Tensor a = at::ones({2, 8});
  EXPECT_EQ(layers[2].forward({a, a, at::zeros({2}, at::kLong)}).at(0).sizes(), a.sizes());
  EXPECT_EQ(layers[0].forward({at::ones({1, 2})}).at(0).size(1), 3);
}

}  // namespace
}  // namespace braid::modules::module_pipeline_test
