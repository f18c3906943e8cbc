// Refusals of a pipeline of user modules, and its end when a module fails.
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/layer_facts.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::module_pipeline_faults_test {
namespace {

using torch::nn::Linear;

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) { return (output - target).square().mean(); }

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

void construct(const LayerList& layers, const Schedule& schedule) {
  run_ranks(schedule.num_ranks(), [&](Communicator& pipe) { ModulePipeline(layers, pipe, {.schedule = schedule}); });
}

TEST(ModulePipeline, ModulesThatDrawAreRefusedByNameWithTheReplacement) {
  LayerList layers;
  const torch::nn::Sequential block(Linear(2, 2), torch::nn::Dropout(0.25), torch::nn::Dropout(0.0));
  layers.add("block", block).add("fc", Linear(2, 2)).add("drop", torch::nn::Dropout2d(0.5));
  const std::string said = refusal([&] { construct(layers, schedule::gpipe(2, 2)); });
  EXPECT_NE(said.find("layers.block = torch::nn::Dropout(p=0.25): draws from the random generator of the process"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("layers.drop = torch::nn::Dropout2d(p=0.5)"), std::string::npos) << said;
  EXPECT_NE(said.find("braid::KeyedDropout"), std::string::npos) << said;
  EXPECT_EQ(said.find("p=0)"), std::string::npos) << said;
}

// Thread ranks share the modules and ask at the same time.
TEST(ModulePipeline, LookingForModulesThatDrawWritesNothing) {
  LayerList layers;
  const torch::nn::Dropout drop(0.5);
  layers.add("drop", drop);
  const auto bytes = [&] { return std::string(reinterpret_cast<const char*>(drop.get()), sizeof(*drop)); };
  const std::string before = bytes();
  EXPECT_EQ(drawing_modules(layers[0]), std::vector<std::string>{"torch::nn::Dropout(p=0.5)"});
  EXPECT_EQ(bytes(), before);
}

TEST(ModulePipeline, FunctionsThatDrawAreRefusedWhenTheyAreFirstRun) {
  LayerList layers;
  layers.add("fc", Linear(2, 2)).add("noise", [](at::Tensor x) { return torch::dropout(x, 0.5, true); });
  const std::string said = refusal([&] {
    run_ranks(2, [&](Communicator& pipe) {
      ModulePipeline pipeline(layers, pipe, {.schedule = schedule::gpipe(2, 2), .loss = loss_of});
      pipeline.step({at::ones({2, 2})}, {at::ones({2, 2})});
    });
  });
  EXPECT_NE(said.find("layers.noise = aten::bernoulli_: draws"), std::string::npos) << said;
}

TEST(ModulePipeline, AWayOfKeepingInStepNeedsRanksToBeInStepWith) {
  LayerList layers;
  layers.add("first", Linear(2, 2)).add("last", Linear(2, 2));
  const std::string said = refusal([&] {
    run_ranks(2, [&](Communicator& pipe) {
      ModulePipeline(layers, pipe, {.schedule = schedule::gpipe(2, 2), .sync = {.zero = 1}});
    });
  });
  EXPECT_NE(said.find("sync = given: needs the ranks to be kept in step with, Options::data"), std::string::npos)
      << said;
}

TEST(ModulePipeline, AScheduleThatCannotRunAndAModuleOfTwoRanksAreToldTogether) {
  Linear shared(2, 2);
  LayerList layers;
  layers.add("a", shared).add("b", shared);
  Schedule schedule = schedule::gpipe(2, 2);
  schedule.programs[1].pop_back();
  const std::string said = refusal([&] { construct(layers, schedule); });
  EXPECT_NE(said.find("schedule = gpipe: must be able to run"), std::string::npos) << said;
  EXPECT_NE(said.find("layers.b: shares a module with layer a of rank 0"), std::string::npos) << said;
}

TEST(ModulePipeline, DataRanksNeedListsOfTheirOwn) {
  LayerList layers;
  layers.add("fc", Linear(5, 3)).add("act", torch::nn::Tanh());
  const std::string said = refusal([&] {
    run_ranks(2, [&](Communicator& world) {
      const auto pipe = world.split(world.rank(), 0, "pipe");
      const ModulePipeline pipeline(layers, *pipe, {.schedule = schedule::gpipe(1, 1), .data = &world});
      world.barrier().wait_host();
    });
  });
  EXPECT_NE(said.find("layers.fc: is run by another pipeline"), std::string::npos) << said;
}

TEST(ModulePipeline, InputsThatCannotBeSplitAreRefused) {
  LayerList layers;
  layers.add("fc", Linear(5, 3)).add("act", torch::nn::Tanh());
  const auto run = [&](const Tensors& inputs, const Tensors& targets) {
    return refusal([&] {
      run_ranks(2, [&](Communicator& pipe) {
        ModulePipeline(layers, pipe, {.schedule = schedule::gpipe(2, 4), .loss = loss_of}).step(inputs, targets);
      });
    });
  };
  const at::Tensor x = at::ones({3, 5}), wide = at::ones({4, 5});
  EXPECT_EQ(run({x}, {}), "inputs[0] = 3 rows: must have a row for each microbatch (4); nearest valid is 4");
  EXPECT_EQ(run({}, {}), "inputs: must be given on the rank of the first stage");
  EXPECT_EQ(run({wide}, {x}), "targets[0]: must have a row per input (4)");
}

TEST(ModulePipeline, AFailingLayerStopsAllRanksWithItsNameAndMessage) {
  LayerList layers;
  int calls = 0;
  layers.add("fc", Linear(2, 2));
  layers.add("bad", [&calls](at::Tensor x) {
    if (++calls == 4) throw std::runtime_error("out of luck");
    return x;
  });
  layers.add("out", Linear(2, 2));
  std::vector<std::string> heard(3);
  EXPECT_THROW(run_ranks(3,
                         [&](Communicator& pipe) {
                           try {
                             ModulePipeline pipeline(layers, pipe,
                                                     {.schedule = schedule::one_f_one_b(3, 8), .loss = loss_of});
                             pipeline.step({at::ones({8, 2})}, {at::ones({8, 2})});
                           } catch (const std::exception& error) {
                             heard[pipe.rank()] = error.what();
                             throw;
                           }
                         }),
               RunError);
  for (const auto& words : heard) {
    EXPECT_NE(words.find("layer bad of stage 1: out of luck"), std::string::npos) << words;
  }
}

// An error that says whose fault it is goes on saying so.
template <class Error>
void expect_unchanged(const Error& thrown) {
  LayerList layers;
  layers.add("fc", Linear(2, 2)).add("bad", [&thrown](const at::Tensor&) -> at::Tensor { throw thrown; });
  run_ranks(1, [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe, {.schedule = schedule::gpipe(1, 2), .loss = loss_of});
    try {
      pipeline.step({at::ones({2, 2})}, {at::ones({2, 2})});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), thrown.what());
    }
  });
}

TEST(ModulePipeline, ErrorsOfALayerKeepTheirKind) {
  expect_unchanged(InternalError("we are wrong"));
  expect_unchanged(IoError("table.bin", 7, "is short"));
  expect_unchanged(RunError("the loss is not finite"));
}

TEST(ModulePipeline, ALayerThatFailedOnceWhileShapesWereFoundMayGoOn) {
  LayerList layers;
  bool fails = true;
  layers.add("fc", Linear(2, 2)).add("moody", [&fails](at::Tensor x) {
    if (fails) throw std::runtime_error("not today");
    return x;
  });
  run_ranks(1, [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe, {.schedule = schedule::one_f_one_b(1, 2), .loss = loss_of});
    const auto step = [&] { return pipeline.step({at::ones({2, 2})}, {at::ones({2, 2})}); };
    EXPECT_THROW(step(), RunError);
    fails = false;
    EXPECT_TRUE(step().has_value());
  });
}

// A layer, a loss and an evaluation that write what they are given.
TEST(ModulePipeline, WhatTheCallerGivesIsNotWritten) {
  LayerList layers;
  layers.add("relu", torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true))).add("fc", Linear(3, 2));
  const auto loss = [](const at::Tensor& output, at::Tensor target) { return loss_of(output, target.neg_()); };
  const at::Tensor x = at::full({4, 3}, -1.0), y = at::ones({4, 2});
  run_ranks(1, [&](Communicator& pipe) {
    ModulePipeline pipeline(layers, pipe, {.schedule = schedule::gpipe(1, 2), .loss = loss});
    pipeline.step({x}, {y});
    EXPECT_TRUE(x.eq(-1).all().item<bool>()) << "a step";
    EXPECT_TRUE(y.eq(1).all().item<bool>()) << "its targets";
    pipeline.forward({x});
    EXPECT_TRUE(x.eq(-1).all().item<bool>()) << "an evaluation";
  });
}

TEST(ModulePipeline, AParameterReleasedLaterNeedsRetrace) {
  LayerList layers;
  Linear first(2, 2);
  layers.add("first", first).add("second", Linear(2, 1));
  for (auto& parameter : first->parameters()) parameter.requires_grad_(false);
  const Tensors x{at::ones({4, 2})}, y{at::ones({4, 1})};
  const auto released = [&](bool told) {
    for (auto& parameter : first->parameters()) parameter.requires_grad_(false).mutable_grad().reset();
    run_ranks(2, [&](Communicator& pipe) {
      ModulePipeline pipeline(layers, pipe, {.schedule = schedule::gpipe(2, 2), .loss = loss_of});
      pipeline.step(x, y);
      if (pipe.rank() == 0) {
        for (auto& parameter : first->parameters()) parameter.requires_grad_(true);
      }
      if (told) pipeline.retrace();
      pipeline.step(x, y);
    });
  };
  EXPECT_THROW(released(false), RunError);
  released(true);
  EXPECT_TRUE(first->weight.grad().defined());
}

}  // namespace
}  // namespace braid::modules::module_pipeline_faults_test
