// The whole model: the same on every number of tensor ranks, silent in evaluation, listed as documented.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "braid/layout/parameters.h"
#include "tests/nn/model_run.h"

namespace braid::nn::gpt2_test {
namespace {

class Gpt2 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Gpt2, testing::Values(2, 3, 4, 6, 8));

ModelRun run_on(int ranks) {
  ModelRun run{tiny_gpt2(), ranks};
  if (ranks % 4 == 0) run.spec.heads = 8;
  run.microbatches = 2;
  return run;
}

TEST_P(Gpt2, ParallelIsSerial) {
  ModelRun run = run_on(GetParam());
  const auto parallel = model_step(run);
  run.ranks = 1;
  expect_equal(parallel, model_step(run), 1e-12);
}

TEST_P(Gpt2, ParallelIsSerialWithDropout) {
  ModelRun run = run_on(GetParam());
  run.spec.dropout = 0.3;
  const auto parallel = model_step(run);
  run.ranks = 1;
  const auto serial = model_step(run);
  expect_equal(parallel, serial, 1e-12);
  run.spec.dropout = 0;
  EXPECT_GT(relative_error(serial.at("loss0"), model_step(run).at("loss0")), 1e-6) << "dropout did nothing";
}

TEST(Gpt2Evaluation, QueuesNothingAndDropsNothing) {
  ModelRun run = run_on(1);
  run.spec.dropout = 0.3;
  run_ranks(1, [&](Communicator& group) {
    RunModel model(run, group);
    const at::NoGradGuard no_grad;
    Microbatch m = run_microbatch(run, 0);
    m.training = false;
    const at::Tensor loss = model.forward(m);
    EXPECT_EQ(model.world.queue.pending(), 0);
    EXPECT_FALSE(loss.requires_grad());
    m.dropout_key = 1;
    EXPECT_TRUE(model.forward(m).equal(loss));
  });
}

TEST(Gpt2Evaluation, PaddedLogitsAreMinusInfinity) {
  ModelRun run = run_on(1);
  run.spec.vocab_multiple = 16;
  run_ranks(1, [&](Communicator& group) {
    RunModel model(run, group);
    const at::NoGradGuard no_grad;
    Microbatch m = run_microbatch(run, 0);
    m.targets_bt = at::Tensor();
    const at::Tensor logits = model.forward(m);
    EXPECT_EQ(logits.size(-1), 32);
    EXPECT_TRUE(logits.narrow(-1, 0, 19).isfinite().all().item<bool>());
    EXPECT_TRUE(logits.narrow(-1, 19, 13).isneginf().all().item<bool>());
  });
}

// With 19 entries over 8 ranks the last rank holds padding only.
TEST(Gpt2Padding, ARankWithoutRealEntriesIsNoTrouble) {
  ModelRun run = run_on(8);
  run.spec.vocab_multiple = 3;  // 24 rows, 3 each: rank 6 has one real row, rank 7 none
  const auto parallel = model_step(run);
  run.ranks = 1;
  run.spec.vocab_multiple = 1;
  expect_equal(parallel, model_step(run), 1e-12);
}

TEST(Gpt2Params, ListsEveryParameterWithItsDecayAndInit) {
  const layout::ModelParams blocks = layout::model_params(tiny_gpt2(), 0, 1);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].name, "embedding");
  EXPECT_EQ(blocks[2].name, "blocks.1");
  EXPECT_EQ(blocks[3].name, "head");
  int64_t elements = 0;
  for (const layout::BlockSpec& block : blocks) {
    for (const layout::ParamSpec& p : block.params) {
      const bool matrix = p.placement.global_shape.size() == 2;
      EXPECT_EQ(p.decay, matrix ? model::WeightDecay::Yes : model::WeightDecay::No) << p.name;
      EXPECT_EQ(p.init.kind == model::Init::Kind::Normal, matrix) << p.name;
      const bool residual = p.name.ends_with("projection.weight") || p.name.ends_with("down.weight");
      EXPECT_DOUBLE_EQ(p.init.std, residual ? 0.02 / 2 : matrix ? 0.02 : 0) << p.name;
      EXPECT_EQ(p.uses, p.name == "wte.weight" ? 2 : 1);
      if (p.use == 0) elements += mesh::num_elements(p.placement.global_shape);
    }
  }
  // 12 c^2 + 13 c per block, the tables, the last norm.
  EXPECT_EQ(elements, 2 * (12 * 24 * 24 + 13 * 24) + (19 + 8) * 24 + 2 * 24);
  EXPECT_EQ(blocks[0].params[0].use, 0);
  EXPECT_EQ(blocks[3].params.back().use, 1);
}

TEST(Gpt2Params, PadsTheVocabulary) {
  ModelSpec spec = tiny_gpt2();
  spec.vocab = 50257;
  spec.vocab_multiple = 64;
  EXPECT_EQ(model::padded_vocab(spec, 1), 50304);
  EXPECT_EQ(model::padded_vocab(spec, 3), 50304);
  EXPECT_EQ(model::padded_vocab(spec, 4), 50432);
}

}  // namespace
}  // namespace braid::nn::gpt2_test
