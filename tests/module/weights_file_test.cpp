// Weights of pipelines as files: what DataParallel writes of the same model, byte for byte, and what it reads.
#include "braid/module/weights_file.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <filesystem>

#include "braid/base/errors.h"
#include "tests/module/saved_models.h"

namespace braid::modules::weights_file_test {
namespace {

using namespace saved_models;

std::unique_ptr<torch::optim::Optimizer> resting(const Tensors& parameters) {
  return std::make_unique<torch::optim::SGD>(parameters, 0.0);
}

Tensors copies(const Tensors& tensors) {
  Tensors all;
  for (const at::Tensor& each : tensors) all.push_back(each.detach().clone());
  return all;
}

class WeightsFiles : public ScratchFolder {
 protected:
  void exported(const Ranks& ranks, uint64_t seed, const std::string& name) {
    on(ranks, nets(ranks, seed), [&](const Trained& rank) { rank.model.export_weights(path(name)); });
  }
};

TEST_F(WeightsFiles, AreTheSameFromAllRanksAndGoIntoAll) {
  exported({nullptr}, 1, "weights");
  for (const Ranks& ranks : kinds_of_ranks()) {
    SCOPED_TRACE(ranks);
    exported(ranks, 1, "from");
    EXPECT_EQ(content(path("from")), content(path("weights")));
    const auto read = [&](const Trained& rank) {
      rank.model.import_weights(path("weights"));
      rank.model.export_weights(path("to"));
      rank.model.save(path("saved"), rank.optimizer);
    };
    on(ranks, nets(ranks, 2), read);
    EXPECT_EQ(content(path("to")), content(path("weights")));
    on(ranks, nets(ranks, 3), [&](const Trained& rank) {
      rank.model.load(path("saved"), rank.optimizer);
      rank.model.export_weights(path("to"));
    });
    EXPECT_EQ(content(path("to")), content(path("weights")));
  }
}

// Imported values are those that the next step updates, on every data rank.
TEST_F(WeightsFiles, AreTrainedOn) {
  exported({nullptr}, 1, "weights");
  const Batch rows = batch(0);
  for (const Ranks& ranks : {Ranks{"1f1b", 2, 2, 1}, Ranks{"interleaved", 2, 1}}) {
    on(
        ranks, nets(ranks, 2),
        [&](const Trained& rank) {
          rank.model.import_weights(path("weights"));
          rank.step(rows);
          rank.model.export_weights(path("after"));
        },
        resting);
    Lists got = nets({nullptr}, 4), want = nets({nullptr}, 5);
    on({nullptr}, got, [&](const Trained& rank) { rank.model.import_weights(path("after")); });
    on({nullptr}, want, [&](const Trained& rank) { rank.model.import_weights(path("weights")); });
    for (const int layer : {0, 1, 4, 6, 7}) {
      const auto of_got = got[0][layer].module->parameters(), of_want = want[0][layer].module->parameters();
      for (size_t i = 0; i < of_want.size(); ++i) EXPECT_TRUE(of_got[i].equal(of_want[i])) << ranks << layer;
    }
  }
}

TEST_F(WeightsFiles, AreNotReadByAnotherModel) {
  exported({nullptr}, 1, "weights");
  const Ranks ranks{"1f1b", 2, 2};
  Lists others = nets(ranks, 2);
  for (LayerList& list : others) list.replace(7, torch::nn::Linear(9, 4));
  std::vector<size_t> faults(4);
  on(ranks, others, [&](const Trained& rank) {
    rank.model.export_weights(path("before"));
    try {
      rank.model.import_weights(path("weights"));
    } catch (const ConfigError& error) {
      faults[rank.world.rank()] = error.problems().size();
    }
    EXPECT_THROW(rank.model.import_weights(path("nothing")), IoError);
    rank.model.export_weights(path("after"));
  });
  EXPECT_EQ(faults, std::vector<size_t>(4, 2));
  EXPECT_EQ(content(path("before")), content(path("after")));
}

TEST_F(WeightsFiles, StayWhereAnotherCannotBeWritten) {
  std::filesystem::create_directory(path("taken"));
  on({"1f1b", 2}, nets({"1f1b", 2}, 1), [&](const Trained& rank) {
    EXPECT_THROW(rank.model.export_weights(path("nowhere/weights")), IoError);
    EXPECT_THROW(rank.model.export_weights(path("taken")), IoError);
    rank.model.export_weights(path("weights"));
  });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2) << "nothing else is left";
}

// Replicas that train independently give their mean and continue with their own weights.
TEST_F(WeightsFiles, HaveTheMeanOfReplicasApart) {
  Lists lists;
  std::vector<torch::nn::Linear> fcs;
  for (int replica = 0; replica < 2; ++replica) {
    fcs.emplace_back(4, 3);
    lists.push_back(LayerList().add("fc", fcs.back()).add("act", torch::nn::Tanh()));
  }
  torch::manual_seed(5);
  const at::Tensor x = torch::randn({8, 4}), y = torch::randn({8, 3});
  run_ranks(4, [&](Communicator& world) {
    const int replica = world.rank() / 2;
    const auto pipe = world.split(replica, 0, "pipe"), data = world.split(world.rank() % 2, 0, "data");
    ModulePipeline pipeline(lists[replica], *pipe,
                            {.schedule = schedule::one_f_one_b(2, 2),
                             .loss = loss_of,
                             .data = data.get(),
                             .sync = {.replication = ReplicationKind::LocalSgd, .period = 9},
                             .world = &world});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.5);
    pipeline.step({x.chunk(2)[replica]}, {y.chunk(2)[replica]});
    pipeline.update(optimizer);
    const Tensors own = copies(pipeline.parameters());
    pipeline.export_weights(path("mean"));
    for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(pipeline.parameters()[i].equal(own[i]));
    EXPECT_THROW(pipeline.save(path("saved"), optimizer), ConfigError);
  });
  torch::nn::Linear mean(4, 3);
  run_ranks(
      1, [&](Communicator& world) { DataParallel(LayerList().add("fc", mean), world).import_weights(path("mean")); });
  const at::Tensor a = fcs[0]->weight.detach(), b = fcs[1]->weight.detach();
  EXPECT_GT((a - b).abs().max().item<double>(), 1e-3);
  EXPECT_LT((mean->weight.detach() - (a + b) / 2).abs().max().item<double>(), 1e-6);
}

}  // namespace
}  // namespace braid::modules::weights_file_test
