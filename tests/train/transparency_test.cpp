// The layout never changes the mathematics: every mesh of at most 8 ranks trains the serial model.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/train/layout_run.h"

namespace braid::train::transparency_test {
namespace {

constexpr int kMicrobatchesPerRank = 4;

struct Layout {
  int data, pipe, tensor;
  std::string schedule;
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << "data" << layout.data << "_pipe" << layout.pipe << "_tensor" << layout.tensor << "_"
             << (layout.schedule == "1f1b" ? "one_f_one_b" : layout.schedule);
}

std::vector<Layout> every_layout(int most_ranks) {
  std::vector<Layout> layouts;
  for (int data = 1; data <= most_ranks; ++data) {
    for (int pipe = 1; data * pipe <= most_ranks; ++pipe) {
      for (int tensor = 1; data * pipe * tensor <= most_ranks; ++tensor) {
        for (const char* schedule : {"gpipe", "1f1b"}) layouts.push_back({data, pipe, tensor, schedule});
      }
    }
  }
  return layouts;
}

// A head count that `tensor` divides: 6 for 1, 2, 3, 6; 8 for 4, 8; 5 and 7 for themselves.
int heads_for(int tensor) {
  for (const int heads : {6, 8, 5, 7}) {
    if (heads % tensor == 0) return heads;
  }
  return tensor;
}

// One rank, the whole batch in one microbatch.
const LayoutResult& serial(int heads, int batch) {
  static std::map<std::pair<int, int>, LayoutResult> known;
  const auto key = std::make_pair(heads, batch);
  if (!known.contains(key)) {
    RunSpec spec = tiny_spec(heads, batch);
    spec.train.microbatch = batch;
    known[key] = train_layout(spec);
  }
  return known[key];
}

class Transparency : public testing::TestWithParam<Layout> {};

TEST_P(Transparency, LossGradientsAndParametersAreTheSerialOnes) {
  const Layout layout = GetParam();
  const int heads = heads_for(layout.tensor), batch = layout.data * kMicrobatchesPerRank;
  RunSpec spec = tiny_spec(heads, batch);
  spec.mesh = {.pipe = layout.pipe, .data = layout.data, .context = 1, .expert = 1, .tensor = layout.tensor};
  spec.pipeline.schedule = layout.schedule;

  const LayoutResult& want = serial(heads, batch);
  const LayoutResult got = train_layout(spec);
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_NEAR(got.losses[step], want.losses[step], 1e-10);
    EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-10);
  }
  EXPECT_EQ(got.sample_hashes, want.sample_hashes);
  EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(EveryMesh, Transparency, testing::ValuesIn(sampled(every_layout(8), 5)),
                         [](const auto& info) { return cat(info.param); });

TEST(TransparencyOfDropout, MasksFollowTheGlobalMicrobatch) {
  RunSpec spec = tiny_spec(6, 8);
  spec.model.dropout = 0.3;
  const LayoutResult want = train_layout(spec);
  spec.mesh = {.pipe = 2, .data = 2, .context = 1, .expert = 1, .tensor = 2};
  const LayoutResult got = train_layout(spec);
  EXPECT_NEAR(got.losses.back(), want.losses.back(), 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
  spec.model.dropout = 0;
  EXPECT_GT(largest_difference(train_layout(spec).params, want.params), 1e-6);
}

double validation_loss(const RunSpec& spec) {
  std::atomic<double> loss = 0;
  on_every_rank(spec, [&](Trainer& trainer) {
    const double mine = trainer.evaluate();
    if (trainer.groups().world.rank() == 0) loss = mine;
    EXPECT_EQ(trainer.step().step, 1);  // evaluation leaves nothing behind that a step would trip over
  });
  return loss;
}

TEST(TransparencyOfEvaluation, TheValidationLossIsTheSameOnEveryMeshAndBatch) {
  RunSpec spec = tiny_spec(6, 8);
  spec.train.eval_sequences = 21;  // no whole number of any batch
  const double want = validation_loss(spec);
  for (const MeshSpec& mesh :
       {MeshSpec{.pipe = 4}, MeshSpec{.data = 4}, MeshSpec{.tensor = 3}, MeshSpec{.pipe = 2, .data = 2, .tensor = 2}}) {
    spec.mesh = mesh;
    EXPECT_NEAR(validation_loss(spec), want, 1e-10);
  }
  spec.train.batch = 16;
  spec.mesh = {.pipe = 2, .data = 2, .batch_shares = "3,1"};
  EXPECT_NEAR(validation_loss(spec), want, 1e-10);
  spec.mesh = {.pipe = 2, .data = 2};
  spec.sync.zero = 3;  // ranks gather parameters together, whether their sequences count or not
  for (const auto& [batch, microbatch] : {std::pair(8, 4), std::pair(4, 1), std::pair(24, 6), std::pair(32, 16)}) {
    spec.train.batch = batch;
    spec.train.microbatch = microbatch;
    EXPECT_NEAR(validation_loss(spec), want, 1e-10) << batch << " in " << microbatch;
  }
  spec.train.eval_sequences = 20;
  EXPECT_GT(std::abs(validation_loss(spec) - want), 1e-6);
  spec.train.eval_sequences = 21;
  spec.train.seed = 2;
  EXPECT_GT(std::abs(validation_loss(spec) - want), 1e-6);
}

// Data ranks with unequal parts of the batch.
class TransparencyOfShares : public testing::TestWithParam<MeshSpec> {};

TEST_P(TransparencyOfShares, AnySharesTrainTheSerialModel) {
  constexpr int kBatch = 16;
  RunSpec spec = tiny_spec(6, kBatch);
  spec.mesh = GetParam();
  spec.model.dropout = 0.3;
  RunSpec alone = spec;
  alone.mesh = {};
  const LayoutResult want = train_layout(alone);
  for (const int zero : {0, 1}) {
    spec.sync.zero = zero;
    const LayoutResult got = train_layout(spec);
    for (size_t step = 0; step < want.losses.size(); ++step) {
      EXPECT_NEAR(got.losses[step], want.losses[step], 1e-12);
      EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-12);
    }
    EXPECT_EQ(got.sample_hashes, want.sample_hashes);
    EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-12);
    EXPECT_LT(largest_difference(got.params, want.params), 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMesh, TransparencyOfShares,
                         testing::Values(MeshSpec{.data = 2, .batch_shares = "3,1"},
                                         MeshSpec{.data = 2, .batch_shares = "1,3"},
                                         MeshSpec{.pipe = 2, .data = 2, .batch_shares = "3,1"},
                                         MeshSpec{.pipe = 2, .data = 2, .batch_shares = "1,3"},
                                         MeshSpec{.data = 2, .tensor = 2, .batch_shares = "3,1"},
                                         MeshSpec{.data = 2, .tensor = 2, .batch_shares = "1,3"},
                                         MeshSpec{.pipe = 2, .data = 3, .batch_shares = "1,5,2"}),
                         [](const auto& info) {
                           std::string shares = info.param.batch_shares;
                           std::ranges::replace(shares, ',', '_');
                           return cat("pipe", info.param.pipe, "_tensor", info.param.tensor, "_shares", shares);
                         });

TEST(TransparencyOfPartition, AnyCutOfTheLayersTrainsTheSameModel) {
  RunSpec spec = tiny_spec(6, 4);
  spec.mesh.pipe = 3;
  for (const char* partition : {"1,5,2", "0.5,5,2.5"}) {
    spec.pipeline.partition = partition;
    EXPECT_LT(largest_difference(train_layout(spec).params, serial(6, 4).params), 1e-10) << partition;
  }
}

}  // namespace
}  // namespace braid::train::transparency_test
