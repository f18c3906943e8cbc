// Pipelines of user modules whose stages have frozen parameters train like one rank.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::frozen_stages_test {
namespace {

using torch::nn::Linear;
using Trained = std::vector<bool>;  // by layer

constexpr int kSteps = 3;

// One layer for each stage.
struct Model {
  std::vector<Linear> linears;

  explicit Model(const Trained& trained) {
    torch::manual_seed(5);
    for (const bool is_trained : trained) {
      linears.emplace_back(6, 6);
      linears.back()->to(at::kDouble);
      for (at::Tensor& parameter : linears.back()->parameters()) parameter.requires_grad_(is_trained);
    }
  }
  LayerList layers() const {
    LayerList list;
    for (size_t i = 0; i < linears.size(); ++i) list.add(cat("layer", i), linears[i]);
    return list;
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const Linear& linear : linears) {
      for (const at::Tensor& parameter : linear->parameters()) all.push_back(parameter);
    }
    return all;
  }
};

at::Tensor loss_of(const at::Tensor& y, const at::Tensor& target) { return (y - target).square().mean(); }

at::Tensor batch(int step) { return at::arange(8 * 6, at::kDouble).view({8, 6}).add(step).sin(); }

std::vector<at::Tensor> trained_serially(const Trained& trained) {
  const Model model(trained);
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(0.01));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    at::Tensor x = batch(step);
    for (Linear linear : model.linears) x = linear(x);
    loss_of(x, batch(step + 1)).backward();
    optimizer.step();
  }
  return model.parameters();
}

std::vector<at::Tensor> trained_in_stages(const Trained& trained, const std::string& schedule) {
  const Model model(trained);
  const LayerList layers = model.layers();
  const int ranks = static_cast<int>(trained.size());
  run_ranks(ranks, [&](Communicator& pipe) {
    const Schedule table = make_schedule(schedule, {.ranks = ranks, .microbatches = 4});
    ModulePipeline pipeline(layers, pipe, {.schedule = table, .loss = loss_of});
    torch::optim::AdamW optimizer(pipeline.parameters(), torch::optim::AdamWOptions(0.01));
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      pipeline.step({batch(step)}, {batch(step + 1)});
      optimizer.step();
    }
  });
  return model.parameters();
}

TEST(FrozenStages, TrainLikeOneRankAndFrozenParametersStay) {
  for (const Trained& trained :
       {Trained{false, true, true}, {true, false, true}, {true, true, false}, {false, false, true}}) {
    const std::vector<at::Tensor> before = Model(trained).parameters(), want = trained_serially(trained);
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      const std::vector<at::Tensor> got = trained_in_stages(trained, schedule);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), 1e-10) << schedule << " #" << i;
        EXPECT_EQ(got[i].equal(before[i]), !trained[i / 2]) << schedule << " #" << i;
        EXPECT_EQ(got[i].grad().defined(), trained[i / 2]) << schedule << " #" << i;
      }
    }
  }
}

}  // namespace
}  // namespace braid::modules::frozen_stages_test
