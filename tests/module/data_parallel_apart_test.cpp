// Replicas that train apart, looked at: one model, the same on all ranks, and none of them trains on another way for
// it.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/sgd.h>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "tests/module/small_models.h"

namespace braid::modules::data_parallel_apart_test {
namespace {

using namespace small_models;

LayerList normed_perceptron() {
  LayerList layers = perceptron();
  torch::nn::BatchNorm1d norm(3);
  norm->to(at::kDouble);
  layers.add("norm", norm);
  return layers;
}

Tensors state_of(const LayerList& layers) {
  Tensors state = copies(layers);
  for (int l = 0; l < layers.size(); ++l) {
    if (!layers[l].module) continue;
    for (const at::Tensor& buffer : layers[l].module->buffers()) state.push_back(buffer.clone());
  }
  return state;
}

bool same(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) return false;
  }
  return true;
}

struct Seen {
  std::vector<Tensors> before, within, after, end;  // by rank
};

// Three steps, or `looks` after two of them and then one more.
Seen seen(const SyncSpec& sync, bool looks) {
  constexpr int kRanks = 3;
  std::vector<LayerList> made;
  for (int rank = 0; rank < kRanks; ++rank) made.push_back(normed_perceptron());
  Seen all;
  for (auto* of : {&all.before, &all.within, &all.after, &all.end}) of->resize(kRanks);
  const std::vector<Minibatch> batches = minibatches({5});
  const bool served = sync.replication == ReplicationKind::ParameterServer;
  run_ranks(kRanks, [&](Communicator& world) {
    const auto rank = static_cast<size_t>(world.rank());
    const LayerList& layers = made[rank];
    DataParallel parallel(layers, world, {.sync = sync});
    torch::optim::SGD optimizer(parallel.parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      const at::Tensor outputs = parallel.forward(share(batches[step].inputs, world.rank(), kRanks));
      parallel.backward(torch::cross_entropy_loss(outputs, share(batches[step].classes, world.rank(), kRanks)));
      served ? parallel.step(0.1) : parallel.step(optimizer);
      if (step != 1 || !looks) continue;
      all.before[rank] = state_of(layers);
      parallel.with_whole_parameters([&] { all.within[rank] = state_of(layers); });
      all.after[rank] = state_of(layers);
    }
    all.end[rank] = state_of(layers);
  });
  return all;
}

TEST(DataParallelApart, AnAverageIsShownAndEachGoesOnWithItsOwn) {
  for (const auto way : {ReplicationKind::LocalSgd, ReplicationKind::DiLoCo}) {
    SCOPED_TRACE(way);
    const SyncSpec sync{.replication = way, .period = 4};
    const Seen looked = seen(sync, true);
    EXPECT_FALSE(same(looked.before[0], looked.before[1]));
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(same(looked.within[rank], looked.within[0])) << rank;
      EXPECT_TRUE(same(looked.after[rank], looked.before[rank])) << rank;
    }
    const auto of_rank = [&](size_t rank, size_t i) { return looked.before[rank][i]; };
    for (size_t i = 0; i < 6; ++i) {
      const at::Tensor mean = (of_rank(0, i) + of_rank(1, i) + of_rank(2, i)) / 3;
      EXPECT_LT((looked.within[0][i] - mean).abs().max().item<double>(), 1e-15) << i;
    }
    const Seen blind = seen(sync, false);
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(same(looked.end[rank], blind.end[rank])) << rank;
  }
}

TEST(DataParallelApart, WorkersSeeTheSameParametersAndBuffers) {
  for (const auto consistency : {Consistency::Ssp, Consistency::Asp}) {
    SCOPED_TRACE(consistency);
    const Seen looked = seen({.replication = ReplicationKind::ParameterServer,
                              .servers = 2,
                              .consistency = consistency,
                              .staleness = 2,
                              .push_every = 3,
                              .pull_every = 5},
                             true);
    for (int rank = 1; rank < 3; ++rank) EXPECT_TRUE(same(looked.within[rank], looked.within[0])) << rank;
  }
}

}  // namespace
}  // namespace braid::modules::data_parallel_apart_test
