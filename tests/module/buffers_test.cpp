// What modules note of the rows they see: where ranks have the same weights, rank 0's notes are those of all.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::buffers_test {
namespace {

constexpr int kSteps = 3, kRows = 12, kFeatures = 4;

struct Net {
  torch::nn::BatchNorm1d norm{kFeatures};
  torch::nn::Linear linear{kFeatures, 2};
  LayerList layers() const { return LayerList().add("norm", norm).add("linear", linear); }
  Tensors buffers() const {
    return {norm->running_mean.clone(), norm->running_var.clone(), norm->num_batches_tracked.clone()};
  }
};

// Of two ranks.
std::vector<at::Tensor> rows() {
  torch::manual_seed(5);
  std::vector<at::Tensor> all;
  for (int step = 0; step < kSteps; ++step) all.push_back(torch::randn({2 * kRows, kFeatures}));
  return all;
}

// Returns the statistics of a BatchNorm that sees `rank`'s rows alone, `parts` of them after another; after each step.
std::vector<Tensors> notes_of(int rank, int parts) {
  Net net;
  std::vector<Tensors> notes;
  for (const at::Tensor& step : rows()) {
    for (const at::Tensor& part : step.chunk(2)[rank].chunk(parts)) net.norm->forward(part);
    notes.push_back(net.buffers());
  }
  return notes;
}

void expect_same(const Tensors& got, const Tensors& want) {
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i << "\n" << got[i] << "\n" << want[i];
}

TEST(Buffers, OfDataParallelAreThoseOfRank0AfterEveryStep) {
  const auto batches = rows();
  for (const SyncSpec& sync :
       {SyncSpec{}, SyncSpec{.zero = 3}, SyncSpec{.replication = ReplicationKind::ParameterServer}}) {
    SCOPED_TRACE(sync.replication);
    const auto want = notes_of(0, 1);
    Net nets[2];
    run_ranks(2, [&](Communicator& world) {
      const Net& net = nets[world.rank()];
      DataParallel parallel(net.layers(), world, {.sync = sync});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1);
      for (int step = 0; step < kSteps; ++step) {
        parallel.backward(parallel.forward(batches[step].chunk(2)[world.rank()]).sum());
        sync.replication == ReplicationKind::ParameterServer ? parallel.step(0.1) : parallel.step(optimizer);
        expect_same(net.buffers(), want[step]);
      }
    });
  }
}

// Two data ranks of a pipeline of one stage, whose batch norm sees microbatches. Replicas that train apart note what
// they see, and have rank 0's notes when they are averaged.
TEST(Buffers, OfAPipelinesDataRanksAreThoseOfRank0WhereReplicasAreAlike) {
  const auto batches = rows();
  const auto want = notes_of(0, 2), others = notes_of(1, 2);
  for (const SyncSpec& sync : {SyncSpec{}, SyncSpec{.replication = ReplicationKind::LocalSgd, .period = 2}}) {
    SCOPED_TRACE(sync.replication);
    Net nets[2];
    run_ranks(2, [&](Communicator& world) {
      const Net& net = nets[world.rank()];
      const auto pipe = world.split(world.rank(), 0, "pipe");
      ModulePipeline pipeline(net.layers(), *pipe,
                              {.schedule = schedule::one_f_one_b(1, 2),
                               .loss = [](const at::Tensor& y, const at::Tensor&) { return y.square().sum(); },
                               .data = &world,
                               .sync = sync});
      torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
      for (int step = 0; step < 2; ++step) {
        optimizer.zero_grad();
        const at::Tensor mine = batches[step].chunk(2)[world.rank()];
        pipeline.step({mine}, {mine});
        pipeline.update(optimizer);
        const bool apart = sync.replication == ReplicationKind::LocalSgd && step == 0;
        expect_same(net.buffers(), apart && world.rank() == 1 ? others[step] : want[step]);
      }
    });
  }
}

}  // namespace
}  // namespace braid::modules::buffers_test
