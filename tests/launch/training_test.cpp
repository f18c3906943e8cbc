// User modules on process ranks: those that draw from the default generator, which thread ranks refuse, train; those
// that do not give what one rank gives.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"
#include "tests/launch/forked.h"

namespace braid::launch::tests::training_test {
namespace {

using torch::nn::Linear;

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) { return (output - target).square().mean(); }

torch::nn::Sequential perceptron(double dropped) {
  torch::manual_seed(1);
  torch::nn::Sequential model(Linear(4, 16), torch::nn::Tanh());
  if (dropped > 0) model->push_back(torch::nn::Dropout(dropped));
  model->push_back(Linear(16, 2));
  model->to(at::kDouble);
  return model;
}

struct Points {
  at::Tensor inputs, targets;
};

Points points(int64_t count) {
  torch::manual_seed(2);
  const at::Tensor inputs = at::rand({count, 4}, at::kDouble);
  return {inputs, at::cat({inputs.sum(1, true), inputs.prod(1, true)}, 1)};
}

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.detach().flatten());
  return at::cat(flat);
}

// The mean loss of the first and the last five steps on this rank's rows, and the parameters at the end.
struct Outcome {
  double first = 0, last = 0;
  at::Tensor parameters;
};

Outcome train(torch::nn::Sequential model, const Points& mine, int steps, Communicator& group) {
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = loss_of(model->forward(mine.inputs), mine.targets);
    loss.backward();
    for (const at::Tensor& parameter : model->parameters()) {
      group.all_reduce(parameter.grad(), ReduceOp::Sum).wait_host();
      parameter.grad().div_(group.size());
    }
    optimizer.step();
    if (step < 5) outcome.first += loss.item<double>() / 5;
    if (step >= steps - 5) outcome.last += loss.item<double>() / 5;
  }
  outcome.parameters = flattened(model->parameters());
  return outcome;
}

TEST(ProcessRankTraining, without_draws_gives_the_result_of_one_rank) {
  for (int ranks : {2, 3}) {
    run_forked(ranks, [](Communicator& world) {
      const Points all = points(12);
      const int64_t rows = 12 / world.size(), first = world.rank() * rows;
      const Points mine{all.inputs.narrow(0, first, rows), all.targets.narrow(0, first, rows)};
      torch::manual_seed(100 + world.rank());
      const Outcome outcome = train(perceptron(0), mine, 20, world);
      const auto alone = world.split(world.rank(), 0, "alone");
      const Outcome serial = train(perceptron(0), all, 20, *alone);
      EXPECT_LT((outcome.parameters - serial.parameters).abs().max().item<double>(), 1e-10);
      EXPECT_GT((outcome.parameters - flattened(perceptron(0)->parameters())).abs().max().item<double>(), 1e-2);
    });
  }
}

// A rank's generator is its own: nobody else draws from it.
TEST(ProcessRankTraining, a_rank_draws_what_its_seed_gives) {
  run_forked(2, [](Communicator& world) {
    torch::nn::Dropout dropout(0.5);
    const at::Tensor ones = at::ones({100});
    std::vector<at::Tensor> masks;
    for (int seed : {0, 1}) {
      torch::manual_seed(seed);
      masks.push_back(dropout(ones));
    }
    torch::manual_seed(world.rank());
    world.barrier().wait_host();
    const at::Tensor mine = dropout(ones), both = at::empty({2, 100});
    EXPECT_TRUE(mine.equal(masks[world.rank()]));
    world.all_gather(both, mine).wait_host();
    EXPECT_FALSE(both[0].equal(both[1]));
  });
}

TEST(ProcessRankTraining, with_dropout_learns_and_keeps_the_ranks_alike) {
  run_forked(2, [](Communicator& world) {
    const Points all = points(64);
    const Points mine{all.inputs.narrow(0, 32 * world.rank(), 32), all.targets.narrow(0, 32 * world.rank(), 32)};
    const torch::nn::Sequential model = perceptron(0.2);
    torch::manual_seed(7 + world.rank());
    const Outcome outcome = train(model, mine, 300, world);
    EXPECT_LT(outcome.last, outcome.first / 3);
    const at::Tensor low = outcome.parameters.clone(), high = outcome.parameters.clone();
    world.all_reduce(low, ReduceOp::Min).wait_host();
    world.all_reduce(high, ReduceOp::Max).wait_host();
    EXPECT_TRUE(low.equal(high));
  });
}

LayerList layers_of(double dropped) {
  LayerList layers;
  layers.add(perceptron(dropped));
  return layers;
}

// Mean losses of the first and the last five steps, on the rank of the last stage.
std::optional<Outcome> train_as_pipeline(Communicator& pipe, double dropped, int steps) {
  ModulePipeline pipeline(layers_of(dropped), pipe,
                          {.schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 4}), .loss = loss_of});
  torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
  const Points all = points(12);
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = pipeline.step({all.inputs}, {all.targets});
    optimizer.step();
    if (!loss) continue;
    if (step < 5) outcome.first += *loss / 5;
    if (step >= steps - 5) outcome.last += *loss / 5;
  }
  return pipe.rank() == 1 ? std::optional(outcome) : std::nullopt;
}

TEST(ProcessRankTraining, a_pipeline_gives_the_result_of_one_rank) {
  run_forked(2, [](Communicator& pipe) {
    const auto outcome = train_as_pipeline(pipe, 0, 20);
    const auto alone = pipe.split(pipe.rank(), 0, "alone");
    if (!outcome) return;
    const Outcome serial = train(perceptron(0), points(12), 20, *alone);
    EXPECT_NEAR(outcome->first, serial.first, 1e-10);
    EXPECT_NEAR(outcome->last, serial.last, 1e-10);
    EXPECT_LT(serial.last, 0.9 * serial.first);
  });
}

// Servers of both ranks' processes hold the parameters of a module of the user.
TEST(ProcessRankTraining, with_parameter_servers_gives_the_result_of_one_rank) {
  run_forked(2, [](Communicator& world) {
    const auto trained = [](Communicator& ranks) {
      const Points all = points(12);
      const int64_t rows = 12 / ranks.size(), first = ranks.rank() * rows;
      const torch::nn::Sequential model = perceptron(0);
      const SyncSpec sync{.replication = ReplicationKind::ParameterServer, .servers = 3};
      const ServerOptimizer descent{.kind = OptimizerKind::Sgd, .momentum = 0, .weight_decay = 0};
      DataParallel parallel(LayerList().add("model", model), ranks, {.sync = sync, .optimizer = descent});
      for (int step = 0; step < 20; ++step) {
        parallel.backward(
            loss_of(parallel.forward(all.inputs.narrow(0, first, rows)), all.targets.narrow(0, first, rows)));
        parallel.step(0.1);
      }
      return flattened(model->parameters());
    };
    const at::Tensor parameters = trained(world);
    const auto alone = world.split(world.rank(), 0, "alone");
    EXPECT_LT((parameters - trained(*alone)).abs().max().item<double>(), 1e-10);
    EXPECT_GT((parameters - flattened(perceptron(0)->parameters())).abs().max().item<double>(), 1e-2);
  });
}

TEST(ProcessRankTraining, modules_that_draw_are_refused_on_thread_ranks_and_train_on_process_ranks) {
  run_forked(1, [](Communicator&) {
    std::string said;
    try {
      run_ranks(2, [](Communicator& pipe) { train_as_pipeline(pipe, 0.2, 1); });
    } catch (const ConfigError& error) {
      said = error.what();
    }
    EXPECT_NE(said.find("torch::nn::Dropout(p=0.2): draws from the random generator of the process"), std::string::npos)
        << said;
    EXPECT_NE(said.find("or ranks must be processes"), std::string::npos) << said;
  });
  run_forked(2, [](Communicator& pipe) {
    const auto outcome = train_as_pipeline(pipe, 0.2, 300);
    if (!outcome) return;
    EXPECT_LT(outcome->last, outcome->first / 3);
  });
}

}  // namespace
}  // namespace braid::launch::tests::training_test
