// Models with parameters and gradients on disk train with the bits of those in memory, in less memory.
#include <torch/optim/adamw.h>

#include <optional>

#include "braid/base/memory_error.h"
#include "braid/base/text.h"
#include "braid/module/auxiliary_loss.h"
#include "tests/module/models_on_disk.h"

namespace braid::modules::model_memory_test {
namespace {

using namespace models_on_disk;

struct Case {
  int ranks;
  SyncSpec sync;
  Kept parameters, gradients;
};
void PrintTo(const Case& of, std::ostream* out) {
  const auto word = [](Kept kept) { return kept == Kept::OnDisk ? " on disk" : " in memory"; };
  *out << of.ranks << " ranks, zero " << of.sync.zero << ", group " << of.sync.zero_group << ", parameters"
       << word(of.parameters) << ", gradients" << word(of.gradients);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::pair<int, SyncSpec> ranks[] = {{1, {}},
                                            {1, {.zero = 3}},
                                            {2, {}},
                                            {2, {.zero = 1}},
                                            {2, {.zero = 2}},
                                            {2, {.zero = 3}},
                                            {4, {.zero = 3, .zero_group = 2}}};
  for (const auto& [count, sync] : ranks) {
    for (const auto& [parameters, gradients] :
         {std::pair(Kept::OnDisk, Kept::OnDisk), {Kept::OnDisk, Kept::InMemory}, {Kept::InMemory, Kept::OnDisk}}) {
      all.push_back({count, sync, parameters, gradients});
    }
  }
  return all;
}

// Trains with two backwards in each step, of which all but the first clip the norm, twice. Evaluates between steps.
// Returns losses and norms.
template <class Step>
std::vector<double> train(DataParallel& model, const Tensors& words, const Step& step) {
  std::vector<double> numbers;
  for (int number = 0; number < kSteps; ++number) {
    for (const int pass : {0, 1}) {
      const at::Tensor loss = loss_of(model, words[3 * number + pass]);
      numbers.push_back(loss.item<double>());
      pass == 0 ? model.accumulate(loss) : model.backward(loss);
    }
    for (int clips = 0; number > 0 && clips < 2; ++clips) numbers.push_back(model.clip_grad_norm(0.1 / (1 + clips)));
    step();
    const c10::AutoGradMode no_grad(false);
    numbers.push_back(loss_of(model, words[3 * number + 2]).item<double>());
  }
  return numbers;
}

class OfCase : public ModelMemoryTest, public testing::WithParamInterface<Case> {
 protected:
  // Trains, and exports weights to `file`. Returns the numbers of the last rank.
  std::vector<double> numbers(const ModelMemory& memory, const std::string& file) {
    std::vector<Part> all = parts(GetParam().ranks);
    std::vector<double> numbers;
    run_ranks(GetParam().ranks, [&](Communicator& world) {
      const Part& mine = all[static_cast<size_t>(world.rank())];
      SyncSpec sync = GetParam().sync;
      if (sync.zero == 1 && !memory.has_disk()) sync.zero = 2;  // the order of sums on disk
      DataParallel model(mine.layers, world, {.sync = sync, .memory = memory});
      torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(0.01).weight_decay(0.1));
      std::optional<OptimizerOnDisk> disk;
      if (memory.has_disk()) disk.emplace(optimizer, OptimizerOnDisk::Options{{folder_}, 8192});
      const auto step = [&] { disk ? model.step(*disk) : model.step(optimizer); };
      const auto own = train(model, mine.words, step);
      if (world.rank() + 1 == world.size()) numbers = own;
      model.export_weights(path(file));
    });
    return numbers;
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, OfCase, testing::ValuesIn(cases()));

TEST_P(OfCase, HasTheBitsOfMemory) {
  const auto want = numbers({}, "memory");
  EXPECT_EQ(numbers(memory(GetParam().parameters, GetParam().gradients), "disk"), want);
  EXPECT_FALSE(content(path("memory")).empty());
  EXPECT_TRUE(content(path("disk")) == content(path("memory")));
}

// Without states the update moves parameters and gradients only.
TEST_F(ModelMemoryTest, SgdWithoutMomentumHasTheBitsOfMemory) {
  std::vector<std::vector<double>> numbers;
  for (const ModelMemory& memory :
       {ModelMemory(), on_disk(), memory(Kept::OnDisk, Kept::InMemory), memory(Kept::InMemory, Kept::OnDisk)}) {
    const std::vector<Part> all = parts(1);
    run_ranks(1, [&](Communicator& world) {
      DataParallel model(all[0].layers, world, {.memory = memory});
      torch::optim::SGD optimizer(model.parameters(), 0.1);
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      const auto step = [&] { memory.has_disk() ? model.step(disk) : model.step(optimizer); };
      numbers.push_back(train(model, all[0].words, step));
      EXPECT_EQ(disk.bytes_read() + disk.bytes_written(), 0);
    });
    EXPECT_EQ(numbers.back(), numbers.front());
  }
}

TEST_F(OneRank, TakesOverValuesThatAreLoadedIntoModules) {
  std::vector<std::string> files;
  for (const ModelMemory& memory : {ModelMemory(), on_disk()}) {
    on(memory, [&](const Trained& rank) {
      rank.step(0);
      const at::Tensor weight = rank.layers[1].module->parameters()[0];
      rank.model.with_whole_parameters([&] { weight.set_data(at::full({kWidth, kWidth}, 0.01)); });
      rank.step(1);
      rank.model.export_weights(path("weights"));
    });
    files.push_back(content(path("weights")));
  }
  EXPECT_TRUE(files[0] == files[1]);
}

// The backward of layer 3 is that of its auxiliary loss alone. Returns the losses of rank 0.
std::vector<double> losses_of_gate(int ranks, const SyncSpec& sync, const ModelMemory& memory) {
  std::vector<LayerList> made;
  for (int rank = 0; rank < ranks; ++rank) {
    torch::manual_seed(5);
    LayerList layers;
    for (int number = 0; number < 6; ++number) {
      const at::Tensor weight = Linear(kWidth, kWidth)->weight;
      const auto run = [weight, number](const at::Tensor& x) {
        if (number != 3) return x.matmul(weight).tanh();
        contribute_auxiliary_loss(weight.square().sum(), 0.3);
        return x.matmul(weight).detach();
      };
      layers.add(cat(number), run, {.parameters = {weight}});
    }
    made.push_back(layers);
  }
  const at::Tensor x = at::randn({5, kWidth});
  std::vector<double> losses;
  run_ranks(ranks, [&](Communicator& world) {
    DataParallel model(made[static_cast<size_t>(world.rank())], world, {.sync = sync, .memory = memory});
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    std::optional<OptimizerOnDisk> disk;
    if (memory.has_disk()) disk.emplace(optimizer, OptimizerOnDisk::Options{memory.folders});
    for (int step = 0; step < 3; ++step) {
      const AuxiliaryLossScope scope;
      const at::Tensor loss = model.forward(x).square().mean() + scope.total();
      if (world.rank() == 0) losses.push_back(loss.item<double>());
      model.backward(loss);
      disk ? model.step(*disk) : model.step(optimizer);
    }
  });
  return losses;
}

TEST_F(OneRank, AuxiliaryLossesOfLayersWithoutAGradientOfTheirOutput) {
  EXPECT_EQ(losses_of_gate(1, {}, on_disk()), losses_of_gate(1, {}, {}));
  EXPECT_EQ(losses_of_gate(2, {.zero = 3}, on_disk()), losses_of_gate(2, {}, {}));
  EXPECT_EQ(losses_of_gate(2, {.zero = 3}, {}), losses_of_gate(2, {}, {}));
}

// Eight layers of 0.4 MB: one that runs and one that is read are in memory.
class EightLayers : public ModelMemoryTest {
 protected:
  static constexpr int64_t kLayerBytes = 4 * 320 * 321;
  static constexpr int kRank = 7;  // of the account; other tests have others

  // Trains on a rank that may hold `limit` bytes. Returns what it has held in the last step.
  param::MemoryUse trained(const ModelMemory& memory, int64_t limit) {
    param::MemoryUse use;
    on_accounted_ranks(kRank, 1, [&](Communicator& world) {
      param::limit_memory(kRank, limit);
      torch::manual_seed(3);
      LayerList layers;
      for (int layer = 0; layer < 8; ++layer) layers.add(cat("fc", layer), Linear(320, 320));
      const at::Tensor x = at::randn({4, 320});
      DataParallel model(layers, world, {.memory = memory});
      torch::optim::AdamW optimizer(model.parameters(), 0.1);
      OptimizerOnDisk disk(optimizer, {{folder_}, 8192});
      for (int step = 0; step < 3; ++step) {
        if (step == 2) param::reset_memory_peak(kRank);
        model.backward(model.forward(x).square().mean());
        model.step(disk);
      }
      use = param::memory_use(kRank);
    });
    return use;
  }
};

TEST_F(EightLayers, TwoAreInMemory) {
  const param::MemoryUse use = trained(on_disk(), 0);
  EXPECT_LT(use.peak_bytes[static_cast<size_t>(param::MemoryCategory::Parameters)], 2.2 * kLayerBytes);
  EXPECT_LT(use.peak_total_bytes, 7 * kLayerBytes) << param::peak_text(kRank);
}

// The modules' own parameters are eight layers until they have moved.
TEST_F(EightLayers, FitInALimitFromDiskOnly) {
  const int64_t limit = 12 * kLayerBytes;
  trained(on_disk(), limit);
  try {
    trained({}, limit);
    ADD_FAILURE() << "parameters and gradients are more than the limit";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("parameters"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace braid::modules::model_memory_test
