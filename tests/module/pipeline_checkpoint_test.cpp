// Programs with ModulePipeline that are saved and go on: on the same ranks bit for bit, and what any ranks load, of
// pipelines or of DataParallel, is what was saved.
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <set>

#include "braid/base/errors.h"
#include "tests/module/saved_models.h"
#include "tests/support/sampled.h"

namespace braid::modules::pipeline_checkpoint_test {
namespace {

using namespace saved_models;

class PipelineCheckpoints : public ScratchFolder {
 protected:
  // Steps [from, to), after what `loaded` holds; leaves `saved`. Empty: neither.
  void trained(const Ranks& ranks, const std::pair<int, int>& steps, const std::string& loaded,
               const std::string& saved, const MakeOptimizer& make = adamw) {
    std::vector<Batch> batches;
    for (int step = 0; step < steps.second; ++step) batches.push_back(batch(step));
    const auto body = [&](const Trained& rank) {
      if (!loaded.empty()) rank.model.load(path(loaded), rank.optimizer);
      for (int step = steps.first; step < steps.second; ++step) rank.step(batches[step]);
      if (!saved.empty()) rank.model.save(path(saved), rank.optimizer);
    };
    on(ranks, nets(ranks, loaded.empty() ? 1 : 2), body, make);
  }
};

std::unique_ptr<torch::optim::Optimizer> sgd(const Tensors& parameters) {
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
}

TEST_F(PipelineCheckpoints, GoOnWithTheBitsOfTheTrainingThatWasNotInterrupted) {
  for (const Ranks& ranks : kinds_of_ranks()) {
    if (!ranks.schedule) continue;
    SCOPED_TRACE(ranks);
    for (const auto& make : sampled<MakeOptimizer>({adamw, sgd}, ranks.zero == 0 ? 1 : 2)) {
      trained(ranks, {0, 3}, "", "whole", make);
      trained(ranks, {0, 2}, "", "cut", make);
      trained(ranks, {2, 3}, "cut", "rest", make);
      expect_same(path("rest"), path("whole"));
    }
  }
}

// From each to the next, the last to the first; in a full run, from each to each.
TEST_F(PipelineCheckpoints, GoThroughOtherRanksStagesAndWaysOfSharding) {
  const std::vector<Ranks> all = kinds_of_ranks();
  trained(all[0], {0, 2}, "", "0");
  for (size_t i = 1; i <= all.size(); ++i) {
    SCOPED_TRACE(all[i % all.size()]);
    trained(all[i % all.size()], {2, 2}, cat(i - 1), cat(i));
    expect_same(path(cat(i)), path("0"));
  }
  for (size_t i = 0; i < all.size() && full_run(); ++i) {
    for (const Ranks& to : all) {
      SCOPED_TRACE(to);
      trained(to, {2, 2}, cat(i), "there");
      expect_same(path("there"), path("0"));
    }
  }
}

TEST_F(PipelineCheckpoints, HaveTorchsNamesAndEachTensorOnce) {
  trained({"zb-v", 2, 2, 1}, {0, 1}, "", "saved");
  std::set<std::string> weights, states;
  for (const auto& [name, tensor] : values(path("saved"))) {
    if (name.find('/') == name.npos) weights.insert(name);
    if (name.find("/mid.") != name.npos) states.insert(name);
  }
  EXPECT_EQ(weights, (std::set<std::string>{
                         "fc.bias", "fc.weight", "head.bias", "head.weight", "late.bias", "late.num_batches_tracked",
                         "late.running_mean", "late.running_var", "late.weight", "mid.bias", "mid.weight", "norm.bias",
                         "norm.num_batches_tracked", "norm.running_mean", "norm.running_var", "norm.weight"}));
  EXPECT_EQ(states, (std::set<std::string>{"exp_avg/mid.weight", "exp_avg_sq/mid.weight", "max_exp_avg_sq/mid.weight",
                                           "step/mid.weight"}));
}

// One layer twice, in the first stage and in the last.
Lists tied_nets(int replicas, uint64_t seed) {
  torch::manual_seed(seed);
  Lists lists;
  for (int replica = 0; replica < replicas; ++replica) {
    torch::nn::Linear ends(3, 3);
    LayerList layers;
    layers.add("first", torch::nn::Linear(7, 3)).add("in", ends).add("a", torch::nn::Linear(3, 3));
    layers.add("b", torch::nn::Linear(3, 3)).add("c", torch::nn::Tanh()).add("d", torch::nn::Linear(3, 3));
    lists.push_back(layers.add("out", ends).add("last", torch::nn::Tanh()));
  }
  return lists;
}

TEST_F(PipelineCheckpoints, HaveATiedLayerUnderItsFirstName) {
  const Ranks piped{"zb-v", 2, 2, 1}, replicas{nullptr, 1, 2, 3};
  const auto step = batch(0);
  on(piped, tied_nets(2, 1), [&](const Trained& rank) {
    rank.step(step);
    rank.model.save(path("piped"), rank.optimizer);
  });
  on(replicas, tied_nets(2, 2), [&](const Trained& rank) {
    rank.model.load(path("piped"), rank.optimizer);
    rank.model.save(path("replicas"), rank.optimizer);
  });
  on(piped, tied_nets(2, 3), [&](const Trained& rank) {
    rank.model.load(path("replicas"), rank.optimizer);
    rank.model.save(path("again"), rank.optimizer);
  });
  expect_same(path("replicas"), path("piped"));
  expect_same(path("again"), path("piped"));
  const auto all = values(path("again"));
  EXPECT_TRUE(all.contains("exp_avg/in.weight"));
  EXPECT_FALSE(all.contains("out.weight"));
}

// Without data ranks a parameter may lie in any way.
TEST_F(PipelineCheckpoints, HoldColumnsAsRows) {
  const auto columns = [](uint64_t seed) {
    const Lists lists = nets({"1f1b", 2}, seed);
    const at::Tensor weight = lists[0][7].module->parameters()[0];
    weight.set_data(weight.detach().t().contiguous().t());
    return lists;
  };
  const Batch rows = batch(0);
  on({"1f1b", 2}, columns(1), [&](const Trained& rank) {
    rank.step(rows);
    rank.model.save(path("columns"), rank.optimizer);
  });
  trained({"1f1b", 2}, {1, 1}, "columns", "rows");
  expect_same(path("rows"), path("columns"));
  const Lists lists = columns(3);
  on({"1f1b", 2}, lists, [&](const Trained& rank) {
    rank.model.load(path("rows"), rank.optimizer);
    rank.model.save(path("again"), rank.optimizer);
  });
  EXPECT_FALSE(lists[0][7].module->parameters()[0].is_contiguous());
  expect_same(path("again"), path("rows"));
}

// Weights that a graph was built on are there no more.
TEST_F(PipelineCheckpoints, LeaveGraphsOfTheTimeBeforeWithoutABackward) {
  trained({"1f1b", 1}, {0, 1}, "", "saved");
  const Lists lists = nets({"1f1b"}, 2);
  on({"1f1b"}, lists, [&](const Trained& rank) {
    const at::Tensor input = torch::randn({2, 7}).requires_grad_(true);
    const at::Tensor before = lists[0][0].forward({input})[0].sum();
    rank.model.load(path("saved"), rank.optimizer);
    EXPECT_THROW(before.backward(), c10::Error);
  });
}

class RefusedCheckpoints : public PipelineCheckpoints {
 protected:
  // Returns the refusal of loading "saved", the same on all ranks; the model is then as it was.
  std::string refused(const Ranks& ranks, const Lists& lists, const MakeOptimizer& make) {
    std::vector<std::string> said(static_cast<size_t>(ranks.pipe * ranks.data));
    const auto attempt = [&](const Trained& rank) {
      rank.model.export_weights(path("before"));
      try {
        rank.model.load(path("saved"), rank.optimizer);
      } catch (const std::runtime_error& error) {
        said[static_cast<size_t>(rank.world.rank())] = error.what();
      }
      EXPECT_TRUE(rank.optimizer.state().empty());
      rank.model.export_weights(path("after"));
    };
    on(ranks, lists, attempt, make);
    for (const std::string& each : said) EXPECT_EQ(each, said[0]);
    EXPECT_EQ(content(path("before")), content(path("after")));
    return said[0];
  }
  static void expect_has(const std::string& said, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(said.find(part), said.npos) << part << " in\n" << said;
  }
};

// The ranks of the first stage have no layer that differs.
TEST_F(RefusedCheckpoints, OfAnotherModel) {
  trained({"1f1b", 2}, {0, 1}, "", "saved");
  const Ranks ranks{"1f1b", 2, 2, 1};
  Lists others = nets(ranks, 2);
  for (LayerList& list : others) {
    list.replace(6, torch::nn::Tanh());
    list.replace(7, torch::nn::Linear(9, 4));
    list.add("more", torch::nn::Linear(4, 3));
  }
  expect_has(refused(ranks, others, adamw),
             {"late.running_mean: is in the checkpoint and not in the model", "head.weight = F32 [3, 9]",
              "more.bias: is not in the checkpoint", "exp_avg/head.bias = F32 [3]"});
}

// Where one rank alone reads, every rank hears of it.
TEST_F(RefusedCheckpoints, ThatAreDamaged) {
  trained({"1f1b", 2}, {0, 1}, "", "saved");
  const std::string file = path("saved/model-00002-of-00002.safetensors");
  std::string bytes = content(file);
  bytes.back() ^= 1;
  write(file, bytes);
  expect_has(refused({"1f1b", 2, 2}, nets({"1f1b", 2, 2}, 2), adamw), {"is not whole", file});
}

// Two parameters whose steps differ have states of their own where nothing is sharded.
TEST_F(RefusedCheckpoints, OfStepsThatOneRangeCannotHave) {
  struct WaysImpl : torch::nn::Module {
    WaysImpl() {
      for (int way = 0; way < 3; ++way) ways.push_back(register_module(cat("way", way), torch::nn::Linear(7, 3)));
    }
    at::Tensor forward(const at::Tensor& x) { return ++calls > 10 ? ways[0](x) + ways[1](x) + ways[2](x) : ways[0](x); }
    std::vector<torch::nn::Linear> ways;
    int calls = 0;
  };
  const auto make = [] { return LayerList().add("ways", std::make_shared<WaysImpl>()).add("end", torch::nn::Tanh()); };
  const std::vector<Batch> batches{batch(0), batch(1), batch(2)};
  on({"1f1b", 2}, {make()}, [&](const Trained& rank) {
    for (const Batch& each : batches) rank.step(each);
    rank.model.save(path("saved"), rank.optimizer);
  });
  const auto counts = values(path("saved"));
  ASSERT_FALSE(counts.at("step/ways.way0.bias").equal(counts.at("step/ways.way1.bias")));
  expect_has(refused({"1f1b", 2, 2, 1}, {make(), make()}, adamw), {"step/ways.way1", "sync.zero = 0"});
  on({"1f1b", 2, 2, 0}, {make(), make()}, [&](const Trained& rank) {
    rank.model.load(path("saved"), rank.optimizer);
    rank.model.save(path("again"), rank.optimizer);
  });
  expect_same(path("again"), path("saved"));
}

TEST_F(RefusedCheckpoints, WhereRanksToSaveWithAreMissing) {
  const Lists lists = nets({"1f1b", 1, 2}, 1);
  run_ranks(2, [&](Communicator& world) {
    const auto pipe = world.split(world.rank(), 0, "pipe");
    ModulePipeline::Options options{.schedule = schedule::one_f_one_b(1, 2), .loss = loss_of, .data = &world};
    ModulePipeline pipeline(lists[world.rank()], *pipe, options);
    EXPECT_THROW(pipeline.export_weights(path("weights")), ConfigError);
  });
  run_ranks(2, [&](Communicator& world) {
    const auto pipe = world.split(world.rank(), 0, "pipe");
    ModulePipeline::Options options{.schedule = schedule::one_f_one_b(1, 2), .data = &world, .world = pipe.get()};
    EXPECT_THROW(ModulePipeline(lists[world.rank()], *pipe, options), ConfigError);
  });
}

TEST_F(RefusedCheckpoints, OfAStepWhoseUpdateIsToCome) {
  const Lists lists = nets({"1f1b", 1, 2}, 1);
  const Batch rows = batch(0);
  run_ranks(2, [&](Communicator& world) {
    const auto pipe = world.split(world.rank(), 0, "pipe");
    ModulePipeline pipeline(lists[world.rank()], *pipe,
                            {.schedule = schedule::one_f_one_b(1, 2),
                             .loss = loss_of,
                             .data = &world,
                             .sync = {.zero = 1},
                             .world = &world});
    pipeline.step({rows.x}, {rows.y});
    EXPECT_THROW(pipeline.export_weights(path("weights")), InternalError);
    pipeline.update([] {});
    pipeline.export_weights(path("weights"));
  });
}

// Names that would be one in the file, a name that reads as an optimizer's state, a type that files have not.
TEST_F(RefusedCheckpoints, OfTensorsThatFilesCannotHold) {
  struct FlaggedImpl : torch::nn::Module {
    FlaggedImpl() { register_buffer("flag", torch::zeros({1}, at::kBool)); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  LayerList list;
  list.add("a", torch::nn::Sequential(torch::nn::Linear(7, 7))).add("a.0", torch::nn::Linear(7, 7));
  list.add("b/c", torch::nn::Linear(7, 3)).add("flagged", std::make_shared<FlaggedImpl>());
  run_ranks(2, [&](Communicator& world) {
    ModulePipeline pipeline(list, world, {.schedule = schedule::one_f_one_b(2, 2)});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    try {
      pipeline.save(path("saved"), optimizer);
      ADD_FAILURE() << "it was saved";
    } catch (const ConfigError& error) {
      expect_has(error.what(), {"a.0.weight: is the name of two tensors", "b/c.bias", "flagged.flag = Bool"});
    }
  });
  EXPECT_FALSE(std::filesystem::exists(path("saved")));
}

}  // namespace
}  // namespace braid::modules::pipeline_checkpoint_test
