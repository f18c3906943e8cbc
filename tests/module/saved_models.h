// One model on ranks of many kinds, to be saved here and loaded there.
#pragma once

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/keyed_dropout.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"
#include "tests/support/scratch_folder.h"

namespace braid::saved_models {

inline constexpr int kRows = 24;

// The ranks that train: DataParallel if there is no schedule.
struct Ranks {
  const char* schedule;
  int pipe = 1, data = 1, zero = 0;
  std::vector<int> balance = {};
  ModelMemory memory = {};
};
inline std::ostream& operator<<(std::ostream& out, const Ranks& ranks) {
  return out << (ranks.schedule ? ranks.schedule : "DataParallel") << " pipe " << ranks.pipe << " data " << ranks.data
             << " zero " << ranks.zero << " balance " << testing::PrintToString(ranks.balance);
}
inline std::vector<Ranks> kinds_of_ranks() {
  return {{"1f1b", 2, 1, 0},         {nullptr, 1, 1, 0},       {"interleaved", 2, 2, 1},  {nullptr, 1, 2, 3},
          {"zb-v", 2, 1, 0},         {nullptr, 1, 2, 1},       {"1f1b", 2, 2, 0, {2, 6}}, {nullptr, 1, 2, 2},
          {"1f1b", 2, 2, 1, {5, 3}}, {"interleaved", 2, 1, 0}, {nullptr, 1, 2, 0},        {"zb-v", 2, 2, 1}};
}

// One parameter is frozen.
inline LayerList net(uint64_t seed) {
  torch::manual_seed(seed);
  torch::nn::Linear mid(9, 9);
  mid->bias.requires_grad_(false);
  LayerList layers;
  layers.add("fc", torch::nn::Linear(7, 9)).add("norm", torch::nn::BatchNorm1d(9)).add("act", torch::nn::Tanh());
  layers.add("drop", KeyedDropout(0.25)).add("mid", mid).add("sin", [](at::Tensor x) { return x.sin(); });
  layers.add("late", torch::nn::BatchNorm1d(9)).add("head", torch::nn::Linear(9, 3));
  return layers;
}

inline at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().sum(1).mean();
}

struct Batch {
  at::Tensor x, y;
};
inline Batch batch(int step) {
  torch::manual_seed(100 + step);
  return {torch::randn({kRows, 7}), torch::randn({kRows, 3})};
}

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(const Tensors&)>;
inline std::unique_ptr<torch::optim::Optimizer> adamw(const Tensors& parameters) {
  return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(0.01).amsgrad(true));
}

// A model on a rank, whichever trains it.
struct Trained {
  modules::SavableModel& model;
  torch::optim::Optimizer& optimizer;
  Communicator& world;
  std::function<void(const Batch&)> step;
  OptimizerOnDisk*& disk;  // makes the steps of `optimizer`, if it is not null
};
using Body = std::function<void(const Trained&)>;
using Lists = std::vector<LayerList>;  // by data rank

inline void on_replicas(const Lists& lists, const Ranks& ranks, const MakeOptimizer& make, const Body& body) {
  run_ranks(ranks.data, [&](Communicator& world) {
    DataParallel model(lists[world.rank()], world, {.sync = {.zero = ranks.zero}, .memory = ranks.memory});
    const auto optimizer = make(model.parameters());
    OptimizerOnDisk* disk = nullptr;
    const auto step = [&](const Batch& batch) {
      const auto share = [&](const at::Tensor& rows) { return rows.chunk(ranks.data)[world.rank()]; };
      model.backward(loss_of(model.forward(share(batch.x)), share(batch.y)));
      disk ? model.step(*disk) : model.step(*optimizer);
    };
    body({model, *optimizer, world, step, disk});
  });
}

inline void on_pipelines(const Lists& lists, const Ranks& ranks, const MakeOptimizer& make, const Body& body) {
  const Schedule schedule = make_schedule(ranks.schedule, {.ranks = ranks.pipe, .microbatches = 4});
  run_ranks(ranks.pipe * ranks.data, [&](Communicator& world) {
    const int replica = world.rank() % ranks.data;  // data ranks are neighbours
    const auto pipe = world.split(replica, 0, "pipe"), data = world.split(world.rank() / ranks.data, 0, "data");
    ModulePipeline model(lists[replica], *pipe,
                         {.schedule = schedule,
                          .loss = loss_of,
                          .balance = ranks.balance,
                          .data = ranks.data > 1 ? &*data : nullptr,
                          .sync = {.zero = ranks.zero},
                          .memory = ranks.memory,
                          .world = &world});
    const auto optimizer = make(model.parameters());
    OptimizerOnDisk* disk = nullptr;
    const auto step = [&](const Batch& batch) {
      optimizer->zero_grad();
      model.step({batch.x.chunk(ranks.data)[replica]}, {batch.y.chunk(ranks.data)[replica]});
      disk ? model.update(*disk) : model.update(*optimizer);
    };
    body({model, *optimizer, world, step, disk});
  });
}

// Calls `body` on every one of the ranks, with a list for each data rank.
inline void on(const Ranks& ranks, const Lists& lists, const Body& body, const MakeOptimizer& make = adamw) {
  (ranks.schedule ? on_pipelines : on_replicas)(lists, ranks, make, body);
}

inline Lists nets(const Ranks& ranks, uint64_t seed) {
  Lists lists;
  for (int replica = 0; replica < ranks.data; ++replica) lists.push_back(net(seed));
  return lists;
}

// Returns the values of the checkpoint, assembled.
inline std::map<std::string, at::Tensor> values(const std::string& directory) {
  std::map<std::string, at::Tensor> all;
  std::vector<ckpt::PlacedTensor> tensors;
  for (const auto& [name, tensor] : ckpt::read_manifest(directory).tensors) {
    all[name] = at::zeros(tensor.shape, ckpt::scalar_type(tensor.type));
    tensors.push_back({name, mesh::replicated(tensor.shape), all[name]});
  }
  ckpt::load_checkpoint(directory, tensors);
  return all;
}

inline void expect_same(const std::string& a, const std::string& b) {
  const auto of_a = values(a), of_b = values(b);
  ASSERT_EQ(of_a.size(), of_b.size());
  for (const auto& [name, tensor] : of_a) {
    ASSERT_TRUE(of_b.contains(name)) << name;
    EXPECT_TRUE(tensor.equal(of_b.at(name))) << name;
  }
  EXPECT_EQ(ckpt::read_checkpoint_info(a).step, ckpt::read_checkpoint_info(b).step);
}

}  // namespace braid::saved_models
