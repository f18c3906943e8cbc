// Masks of KeyedDropout under DataParallel: functions of seed, step, rank and pass, as in a pipeline.
#include "braid/module/keyed_dropout.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <set>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/module/layer_facts.h"
#include "braid/module/module_pipeline.h"
#include "braid/schedule/generators.h"

namespace braid::modules::keyed_dropout_test {
namespace {

constexpr int64_t kMasked = 256;

// Two drops in a row, and what they made of ones.
struct TwoDrops {
  explicit TwoDrops(uint64_t seed) : first(0.5, seed), second(0.5, seed) {}
  LayerList layers() {
    LayerList list;
    const auto look = [this](const at::Tensor& x) {
      seen.push_back(x.detach().ne(0));
      return at::ones_like(x);
    };
    list.add("first", first).add("see", look).add("second", second).add("see too", look);
    list.add("fc", torch::nn::Linear(kMasked, 1));
    return list;
  }
  KeyedDropout first, second;
  Tensors seen;
};

at::Tensor ones() { return at::ones({1, kMasked}); }

// Two steps of two passes each on two ranks, with an evaluation before the second step; the masks of each rank.
std::vector<Tensors> masks_of(uint64_t seed) {
  std::vector<std::unique_ptr<TwoDrops>> models;
  for (int rank = 0; rank < 2; ++rank) models.push_back(std::make_unique<TwoDrops>(seed));
  run_ranks(2, [&](Communicator& world) {
    TwoDrops& model = *models[world.rank()];
    DataParallel parallel(model.layers(), world);
    for (int step = 0; step < 2; ++step) {
      parallel.accumulate(parallel.forward(ones()).sum());
      parallel.backward(parallel.forward(ones()).sum());
      parallel.step([] {});
      const size_t before = model.seen.size();
      model.first->eval(), model.second->eval();
      parallel.forward(ones());
      for (size_t i = before; i < model.seen.size(); ++i) EXPECT_TRUE(model.seen[i].all().item<bool>());
      model.seen.resize(before);
      model.first->train(), model.second->train();
    }
  });
  return {models[0]->seen, models[1]->seen};
}

TEST(KeyedDropout, UnderDataParallelNoTwoMasksAreAlike) {
  Tensors all;
  for (const uint64_t seed : {3, 4}) {
    for (const Tensors& of_rank : masks_of(seed)) all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  ASSERT_EQ(all.size(), 2u * 2 * 2 * 2 * 2);  // seeds, ranks, steps, passes, layers
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i].equal(all[j])) << i << " and " << j;
  }
  const auto again = masks_of(4);
  EXPECT_TRUE(again[1].back().equal(all.back())) << "the same at every run";
}

TEST(KeyedDropout, UnderDataParallelMasksAreThoseOfAPipelinesDataRanks) {
  std::vector<Tensors> expected(2), found(2);
  std::vector<std::unique_ptr<TwoDrops>> piped, parallel;
  for (int rank = 0; rank < 2; ++rank) {
    piped.push_back(std::make_unique<TwoDrops>(5));
    parallel.push_back(std::make_unique<TwoDrops>(5));
  }
  run_ranks(2, [&](Communicator& world) {
    const auto pipe = world.split(world.rank(), 0, "pipe");
    const auto sum = [](const at::Tensor& output, const at::Tensor&) { return output.sum(); };
    ModulePipeline pipeline(piped[world.rank()]->layers(), *pipe,
                            {.schedule = schedule::gpipe(1, 1), .loss = sum, .data = &world});
    DataParallel other(parallel[world.rank()]->layers(), world);
    for (int step = 0; step < 2; ++step) {
      pipeline.step({ones()}, {ones()});
      other.backward(other.forward(ones()).sum());
      other.step([] {});
    }
  });
  for (int rank = 0; rank < 2; ++rank) {
    Tensors& traced = piped[rank]->seen;
    traced.erase(traced.begin(), traced.begin() + 2);  // of the trace
    ASSERT_EQ(parallel[rank]->seen.size(), traced.size());
    for (size_t i = 0; i < traced.size(); ++i) EXPECT_TRUE(parallel[rank]->seen[i].equal(traced[i])) << i;
  }
}

// The caller runs the module himself.
TEST(KeyedDropout, UnderDataParallelAModuleRunByItsOwnerDrawsAnew) {
  run_ranks(1, [](Communicator& world) {
    KeyedDropout drop(0.5, 1);
    torch::nn::Sequential net(torch::nn::Linear(kMasked, kMasked), drop);
    DataParallel parallel(LayerList().add("net", net), world);
    Tensors masks;
    for (int step = 0; step < 3; ++step) {
      const at::Tensor output = net->forward(ones());
      masks.push_back(output.detach().ne(0));
      parallel.backward(output.sum());
      parallel.step([] {});
    }
    EXPECT_FALSE(masks[0].equal(masks[1]));
    EXPECT_FALSE(masks[1].equal(masks[2]));
  });
}

// Other threads of the process may draw meanwhile.
TEST(KeyedDropout, NeitherReadsNorWritesTheGeneratorOfTheProcess) {
  std::vector<Tensors> masks;
  for (const uint64_t process_seed : {1, 2}) {
    TwoDrops model(3);
    run_ranks(1, [&](Communicator& world) {
      DataParallel parallel(model.layers(), world);
      torch::manual_seed(process_seed);
      const at::Tensor before = generator_state();
      parallel.forward(ones());
      EXPECT_TRUE(generator_state().equal(before));
    });
    masks.push_back(model.seen);
  }
  for (size_t i = 0; i < masks[0].size(); ++i) EXPECT_TRUE(masks[0][i].equal(masks[1][i])) << i;
}

TEST(KeyedDropout, NeedsToKnowItsMicrobatch) {
  KeyedDropout drop(0.5, 1);
  EXPECT_THROW(drop(ones()), ConfigError);
  drop->eval();
  EXPECT_TRUE(drop(ones()).equal(ones()));
}

}  // namespace
}  // namespace braid::modules::keyed_dropout_test
