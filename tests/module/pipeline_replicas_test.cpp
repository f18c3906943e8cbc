// Data ranks of a pipeline of user modules: buckets, compression, ZeRO, local SGD, and parameters and gradients on
// disk, as DataParallel has them.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <barrier>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/module/two_pipelines.h"
#include "tests/support/scratch_folder.h"

namespace braid::modules::pipeline_replicas_test {
namespace {

using namespace two_pipelines;

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(const Tensors&)>;
std::unique_ptr<torch::optim::Optimizer> adam(const Tensors& parameters) {
  return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.02));
}
std::unique_ptr<torch::optim::Optimizer> sgd(const Tensors& parameters) {
  return std::make_unique<torch::optim::SGD>(parameters, 0.1);
}

struct Outcome {
  std::vector<double> losses;
  std::vector<Tensors> parameters;  // by replica
};

Tensors copies(Model& model) {
  Tensors all;
  for (const auto& parameter : model.parameters()) all.push_back(parameter.detach().clone());
  return all;
}

Outcome serial(const MakeOptimizer& make) {
  Model model(1);
  Tensors trained;
  for (const auto& parameter : model.parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  const auto optimizer = make(trained);
  Outcome outcome;
  for (const Batch& batch : batches()) {
    optimizer->zero_grad(false);
    at::Tensor loss = at::zeros({}, at::kDouble);
    for (const int replica : {0, 1}) {
      model.branches->takes_side = replica == 0;
      Tensors flow{batch.half(replica).x};
      const LayerList layers = model.layers();
      for (int l = 0; l < layers.size(); ++l) flow = layers[l].forward(flow);
      loss = loss + loss_of(flow[0], batch.half(replica).y) / 2;
    }
    loss.backward();
    for (const auto& each : trained) {
      if (!each.grad().defined()) each.mutable_grad() = at::zeros_like(each);
    }
    optimizer->step();
    outcome.losses.push_back(loss.item<double>());
  }
  outcome.parameters = {copies(model)};
  return outcome;
}

Outcome piped(const MakeOptimizer& make, const SyncSpec& sync, const Schedule& schedule,
              const ModelMemory& memory = {}) {
  Pair pair = replicas();
  Outcome outcome{{}, std::vector<Tensors>(2)};
  const auto data = batches();
  std::barrier meeting(4);  // of all ranks, which have whole parameters at the same time
  const auto train = [&](ModulePipeline& pipeline, Communicator&, int replica) {
    const auto optimizer = make(pipeline.parameters());
    std::optional<OptimizerOnDisk> on_disk;
    if (memory.has_disk()) on_disk.emplace(*optimizer, OptimizerOnDisk::Options{memory.folders});
    bool is_last = false;
    for (const Batch& batch : data) {
      optimizer->zero_grad();
      const auto loss = pipeline.step({batch.half(replica).x}, {batch.half(replica).y});
      is_last = loss.has_value();
      if (loss && replica == 0) outcome.losses.push_back(*loss);
      on_disk ? pipeline.update(*on_disk) : pipeline.update(*optimizer);
    }
    const auto copy = [&] {
      meeting.arrive_and_wait();
      if (is_last) outcome.parameters[replica] = copies(pair[replica]);
      meeting.arrive_and_wait();
    };
    const bool gathers = sync.zero == 3 || memory.parameters == Kept::OnDisk;
    gathers ? pipeline.with_whole_parameters(copy) : copy();
  };
  on_two_pipelines(pair, sync, schedule, train, memory);
  return outcome;
}

double distance(const Tensors& a, const Tensors& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, (a[i] - b[i]).abs().max().item<double>());
  return most;
}

void expect_near(const Outcome& found, const Outcome& expected, double margin) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (size_t i = 0; i < found.losses.size(); ++i) EXPECT_NEAR(found.losses[i], expected.losses[i], margin) << i;
  for (const Tensors& each : found.parameters) EXPECT_LT(distance(each, expected.parameters[0]), margin);
}

TEST(PipelineReplicas, TrainWhatOneRankTrains) {
  const Outcome expected = serial(adam);
  for (const Schedule& schedule : {one_stage_each(), two_stages_each()}) {
    SCOPED_TRACE(schedule.name);
    expect_near(piped(adam, {}, schedule), expected, 1e-10);
    expect_near(piped(adam, small_buckets(), schedule), expected, 1e-10);
    expect_near(piped(adam, {.overlap = OverlapChoice::Off}, schedule), expected, 1e-10);
    for (const int zero : {1, 2, 3}) {
      expect_near(piped(adam, {.zero = zero}, schedule), expected, 1e-10);
      expect_near(piped(adam, {.zero = zero, .zero_group = 1}, schedule), expected, 1e-10);
    }
  }
}

TEST(PipelineReplicas, ThreadsThatShareALayerAreRefused) {
  Pair pair = replicas();
  pair[1].head = pair[0].head;
  try {
    on_two_pipelines(pair, {}, one_stage_each(), [](ModulePipeline&, Communicator&, int) {});
    ADD_FAILURE() << "was not refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("layers.head: is run by several ranks"), std::string::npos)
        << error.what();
  }
}

// Replica 0 has microbatches of one size, and replica 1 of two, so they trace shapes in different numbers.
TEST(PipelineReplicas, RowsThatDifferUnderZero) {
  const auto losses = [](int zero) {
    Pair pair = replicas();
    std::vector<double> found;
    on_two_pipelines(pair, {.zero = zero}, one_stage_each(), [&](ModulePipeline& pipeline, Communicator&, int replica) {
      const auto optimizer = adam(pipeline.parameters());
      for (const int rows : {6, 6, 9}) {
        const int64_t own = rows + replica;
        const at::Tensor x = at::linspace(-1, 1, own * 5, at::kDouble).view({own, 5}), y = x.narrow(1, 0, 3).sin();
        const auto loss = pipeline.step({x}, {y});
        if (loss && replica == 1) found.push_back(*loss);
        pipeline.update(*optimizer);
      }
    });
    return found;
  };
  const auto want = losses(0);
  for (const int zero : {2, 3}) {
    const auto got = losses(zero);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-10) << zero;
  }
}

using ReplicasOnDisk = ScratchFolder;

TEST_F(ReplicasOnDisk, TrainWhatOneRankTrains) {
  const Outcome expected = serial(adam);
  for (const Schedule& schedule : {one_stage_each(), two_stages_each()}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const auto& [parameters, gradients] :
           {std::pair(Kept::OnDisk, Kept::OnDisk), {Kept::OnDisk, Kept::InMemory}, {Kept::InMemory, Kept::OnDisk}}) {
        SCOPED_TRACE(cat(schedule.name, ", zero ", zero, ", parameters on disk ", parameters == Kept::OnDisk,
                         ", gradients ", gradients == Kept::OnDisk));
        const ModelMemory memory{.parameters = parameters, .gradients = gradients, .folders = {folder_}};
        expect_near(piped(adam, {.zero = zero}, schedule, memory), expected, 1e-10);
      }
    }
  }
}

TEST(PipelineReplicas, LocalSgdOfOneStepIsSummingGradients) {
  const Outcome expected = serial(sgd);
  Outcome found = piped(sgd, {.replication = ReplicationKind::LocalSgd}, one_stage_each());
  EXPECT_NEAR(found.losses[0], expected.losses[0], 1e-10);
  for (const Tensors& each : found.parameters) EXPECT_LT(distance(each, expected.parameters[0]), 1e-10);
  // Before the end of a period replicas differ.
  found = piped(sgd, {.replication = ReplicationKind::LocalSgd, .period = kSteps + 1}, one_stage_each());
  EXPECT_GT(distance(found.parameters[0], found.parameters[1]), 1e-3);
}

TEST(PipelineReplicas, CompressedGradientsTrainNearly) {
  expect_near(piped(sgd, {.compression = CompressionKind::BFloat16}, one_stage_each()), serial(sgd), 0.05);
}

}  // namespace
}  // namespace braid::modules::pipeline_replicas_test
