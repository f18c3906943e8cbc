// Programs with DataParallel that are saved and go on: on the same ranks bit for bit, and what any ranks load is what
// was saved.
#include "braid/module/module_checkpoint.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <map>
#include <set>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/safetensors.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/keyed_dropout.h"
#include "tests/module/saved_models.h"
#include "tests/support/scratch_folder.h"

namespace braid::modules::module_checkpoint_test {
namespace {

using saved_models::expect_same;
using saved_models::values;
using torch::nn::Sequential;

constexpr int kRows = 12;

Sequential make_net(uint64_t seed) {
  torch::manual_seed(seed);
  return Sequential(torch::nn::Linear(7, 9), torch::nn::BatchNorm1d(9), torch::nn::Tanh(), KeyedDropout(0.25),
                    torch::nn::Linear(9, 3));
}

at::Tensor batch(int step) {
  torch::manual_seed(100 + step);
  return torch::randn({kRows, 7});
}

void import_into(Sequential net, const std::string& path) {
  run_ranks(1, [&](Communicator& world) { DataParallel(LayerList().add(net), world).import_weights(path); });
}

class ModuleCheckpoints : public ScratchFolder {
 protected:
  // Steps [from, to) on `ranks`, after what `loaded` holds; leaves `saved`. Empty: neither.
  void trained(int ranks, int zero, const std::pair<int, int>& steps, const std::string& loaded,
               const std::string& saved) {
    std::vector<Sequential> nets;
    for (int rank = 0; rank < ranks; ++rank) nets.push_back(make_net(loaded.empty() ? 1 : 2));
    std::vector<at::Tensor> batches;
    for (int step = 0; step < steps.second; ++step) batches.push_back(batch(step));
    run_ranks(ranks, [&](Communicator& world) {
      DataParallel model(LayerList().add(nets[world.rank()]), world, {.sync = {.zero = zero}});
      torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(0.01).amsgrad(true));
      if (!loaded.empty()) model.load(loaded, optimizer);
      for (int step = steps.first; step < steps.second; ++step) {
        const at::Tensor rows = batches[step].chunk(ranks)[world.rank()];
        model.backward(model.forward(rows).square().mean());
        model.step(optimizer);
      }
      if (!saved.empty()) model.save(saved, optimizer);
    });
  }
};

TEST_F(ModuleCheckpoints, GoOnWithTheBitsOfTheTrainingThatWasNotInterrupted) {
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    const std::string name = cat("zero-", zero);
    trained(2, zero, {0, 5}, "", path(name + "-whole"));
    trained(2, zero, {0, 3}, "", path(name + "-cut"));
    trained(2, zero, {3, 5}, path(name + "-cut"), path(name + "-rest"));
    expect_same(path(name + "-rest"), path(name + "-whole"));
    EXPECT_EQ(ckpt::read_checkpoint_info(path(name + "-rest")).step, 5);
  }
}

// Saved on two, loaded and saved on one and on three, back on two: as if nobody had.
TEST_F(ModuleCheckpoints, GoThroughOtherRanksAndWaysOfSharding) {
  trained(2, 3, {0, 5}, "", path("whole"));
  trained(2, 3, {0, 3}, "", path("on-2"));
  trained(1, 0, {3, 3}, path("on-2"), path("on-1"));
  trained(3, 2, {3, 3}, path("on-1"), path("on-3"));
  expect_same(path("on-3"), path("on-2"));
  trained(2, 3, {3, 5}, path("on-3"), path("rest"));
  expect_same(path("rest"), path("whole"));
}

TEST_F(ModuleCheckpoints, HaveTorchsNames) {
  trained(1, 0, {0, 1}, "", path("saved"));
  std::set<std::string> weights, states;
  for (const auto& [name, tensor] : values(path("saved"))) {
    if (name.find('/') == name.npos) weights.insert(name);
    if (name.ends_with("/0.weight")) states.insert(name);
  }
  EXPECT_EQ(weights, (std::set<std::string>{"0.bias", "0.weight", "1.bias", "1.num_batches_tracked", "1.running_mean",
                                            "1.running_var", "1.weight", "4.bias", "4.weight"}));
  EXPECT_EQ(states, (std::set<std::string>{"exp_avg/0.weight", "exp_avg_sq/0.weight", "max_exp_avg_sq/0.weight",
                                           "step/0.weight"}));
}

// The same file however the parameters are sharded, with all of them.
TEST_F(ModuleCheckpoints, AreExportedWhole) {
  for (const int zero : {0, 3}) {
    std::vector<Sequential> nets{make_net(1), make_net(2)};
    run_ranks(2, [&](Communicator& world) {
      DataParallel model(LayerList().add(nets[world.rank()]), world, {.sync = {.zero = zero}});
      model.export_weights(path(cat("zero-", zero)));
      EXPECT_THROW(model.export_weights(path("nowhere/weights")), IoError);
    });
  }
  EXPECT_EQ(content(path("zero-0")), content(path("zero-3")));
  const CheckedFile file(path("zero-3"));
  const ckpt::SafetensorsHeader header = ckpt::read_header(file);
  Sequential net = make_net(1);
  std::map<std::string, at::Tensor> wanted;
  for (const auto& item : net->named_parameters()) wanted[item.key()] = item.value().detach();
  for (const auto& item : net->named_buffers()) wanted[item.key()] = item.value();
  ASSERT_EQ(header.tensors.size(), wanted.size());
  for (const ckpt::TensorEntry& entry : header.tensors) {
    const at::Tensor& want = wanted.at(entry.info.name);
    const at::Tensor got = at::zeros(entry.info.shape, ckpt::scalar_type(entry.info.type));
    file.read(header.data_begin + entry.begin, ckpt::bytes_of(got));
    EXPECT_TRUE(got.equal(want)) << entry.info.name;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2) << "nothing else is left";
}

TEST_F(ModuleCheckpoints, AreImportedByAnyRanks) {
  Sequential from = make_net(1);
  run_ranks(
      1, [&](Communicator& world) { DataParallel(LayerList().add(from), world, {}).export_weights(path("weights")); });
  for (const int zero : {0, 1, 3}) {
    std::vector<Sequential> nets{make_net(2), make_net(3)};
    run_ranks(2, [&](Communicator& world) {
      DataParallel model(LayerList().add(nets[world.rank()]), world, {.sync = {.zero = zero}});
      model.import_weights(path("weights"));
      torch::optim::SGD optimizer(model.parameters(),
                                  torch::optim::SGDOptions(0));  // a step writes the shards to the modules
      model.backward(model.forward(batch(0).chunk(2)[world.rank()]).square().mean());
      model.step(optimizer);
      model.export_weights(path(cat("again-", zero)));
    });
    Sequential other = make_net(4), last = make_net(5);
    import_into(other, path(cat("again-", zero)));
    import_into(last, path("weights"));
    for (const auto& item : last->named_parameters())
      EXPECT_TRUE(other->named_parameters()[item.key()].equal(item.value())) << zero << " " << item.key();
  }
}

TEST_F(ModuleCheckpoints, AreNotImportedFromAnotherModel) {
  run_ranks(1, [&](Communicator& world) {
    DataParallel(LayerList().add(make_net(1)), world).export_weights(path("weights"));
  });
  Sequential other(torch::nn::Linear(7, 8), torch::nn::Linear(8, 3), torch::nn::Linear(3, 3));
  const at::Tensor before = other->named_parameters()["0.weight"].detach().clone();
  try {
    import_into(other, path("weights"));
    FAIL() << "it was read";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems().size(), 4u + 5 + 2) << error.what();
  }
  EXPECT_TRUE(other->named_parameters()["0.weight"].equal(before));
  EXPECT_THROW(import_into(other, path("nothing")), IoError);
}

// The bias was frozen while the weight was trained. Where both are in one range, the optimizer has one step count.
TEST_F(ModuleCheckpoints, AreRefusedIfParametersOfARangeHaveOtherCounts) {
  const auto on_one = [](const ModelMemory& memory, const auto& body) {
    const torch::nn::Linear fc(4, 4);
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(LayerList().add("fc", fc), world, {.memory = memory});
      torch::optim::AdamW optimizer(model.parameters(), 0.1);
      body(fc->bias, model, optimizer);
    });
  };
  on_one({}, [&](at::Tensor bias, DataParallel& model, torch::optim::AdamW& optimizer) {
    bias.requires_grad_(false);
    model.backward(model.forward(at::ones({2, 4})).square().mean());
    model.step(optimizer);
    bias.requires_grad_(true);
    model.save(path("saved"), optimizer);
  });
  const auto load = [&](const at::Tensor&, DataParallel& model, torch::optim::AdamW& optimizer) {
    model.load(path("saved"), optimizer);
  };
  on_one({}, load);
  EXPECT_THROW(on_one({.parameters = Kept::OnDisk, .folders = {folder_}}, load), ConfigError);
}

TEST_F(ModuleCheckpoints, RefuseWhatTheyDoNotKnow) {
  const auto refused = [&](const SyncSpec& sync) {
    Sequential net = make_net(1);
    bool threw = false;
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(LayerList().add(net), world, {.sync = sync});
      torch::optim::RMSprop optimizer(model.parameters(), 0.1);
      try {
        model.save(path("saved"), optimizer);
      } catch (const ConfigError&) {
        threw = true;
      }
    });
    return threw && !std::filesystem::exists(path("saved"));
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({.replication = ReplicationKind::LocalSgd}));
}

}  // namespace
}  // namespace braid::modules::module_checkpoint_test
