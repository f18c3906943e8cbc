// pipeline.partition = "measured": what is measured, what is made of it, and that a run goes on with the same cut.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "braid/spec/describe.h"
#include "braid/spec/partition.h"
#include "braid/train/stage_profile.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::measured_partition_test {
namespace {

class MeasuredPartition : public ScratchFolder {
 protected:
  void SetUp() override { param::install_memory_accounting(); }
};

RunSpec measured_spec(int pipe) {
  RunSpec spec = tiny_spec(6, 8);
  spec.mesh.pipe = pipe;
  spec.pipeline.partition = "measured";
  return spec;
}

// Half a block costs 1, the embedding 0.5, the head 3.
std::vector<plan::Unit> plain_units(int layers) {
  std::vector<plan::Unit> units(2 * layers + 2, plan::Unit{"half", 0.25, 0.5, 0.25, 1 << 20, 1 << 20});
  units.front() = {"embedding", 0.25, 0, 0.25, 1 << 20, 8 << 20};
  units.back() = {"head", 1, 1, 1, 1 << 20, 8 << 20};
  return units;
}

// One layer of each kind is measured for all of it.
TEST_F(MeasuredPartition, MeasuresOneLayerOfEachKind) {
  RunSpec spec = measured_spec(2);
  spec.model.family = ModelFamily::Gemma2;
  spec.model.layers = 5;
  spec.model.window = 3;
  spec.model.attention_cap = 50;
  const auto units = profiled_units(spec, 1);
  ASSERT_EQ(units.size(), 12u);
  for (const size_t layer : {2, 4}) {
    plan::Unit attention = units[1 + 2 * layer];
    EXPECT_EQ(attention.name, cat("blocks.", layer, ".attention"));
    attention.name = units[1].name;
    EXPECT_EQ(attention, units[1]);
  }
  EXPECT_EQ(units[3].forward, units[7].forward);
  EXPECT_NE(units[3].forward, units[1].forward) << "two measurements";
}

// Layers 1, 3 and 5 cost 4 each, the others 2. The best cut of three stages has as many of the dear ones in each.
TEST_F(MeasuredPartition, CutsLayersOfUnequalCost) {
  RunSpec spec = measured_spec(3);
  spec.model.layers = 6;
  std::vector<plan::Unit> units = plain_units(6);
  units.front().forward = units.back().forward = 0.01;
  units.front().weight_grad = units.back().input_grad = units.back().weight_grad = 0;
  for (const int layer : {1, 3, 5}) {
    for (const int part : {0, 1}) units[1 + 2 * layer + part].forward += 1;
  }
  const plan::Partition cut = best_partition(spec, units);
  EXPECT_EQ(spec::partition_text(spec.model, cut.first_unit), "2,2,2");
  for (const int layer : {3, 5}) units[1 + 2 * layer] = units[2 + 2 * layer] = units[1];
  for (const int part : {0, 1}) units[3 + part].forward += 3;  // layer 1 costs 10
  EXPECT_EQ(spec::partition_text(spec.model, best_partition(spec, units).first_unit), "1.5,1.5,3");
}

TEST_F(MeasuredPartition, UnitsAreThoseOfTheModel) {
  RunSpec spec = measured_spec(2);
  spec.train.microbatch = 2;
  const auto units = profiled_units(spec, 1);
  ASSERT_EQ(units.size(), 18u);
  EXPECT_EQ(units[0].name, "embedding");
  EXPECT_EQ(units[3].name, "blocks.1.attention");
  EXPECT_EQ(units[4].name, "blocks.1.mlp");
  EXPECT_EQ(units[17].name, "head");
  for (const plan::Unit& unit : units) {
    EXPECT_GT(unit.forward, 0) << unit.name;
    EXPECT_GT(unit.input_grad, 0) << unit.name;
    EXPECT_GT(unit.weight_grad, 0) << unit.name;
  }
  // Data, gradient and two moments in float64; 24 wide, vocabulary 19, 6 positions.
  const int64_t c = 24, bytes = 4 * 8;
  EXPECT_EQ(units[0].fixed_bytes, (19 + 6) * c * bytes);
  EXPECT_EQ(units[1].fixed_bytes, (2 * c + 4 * c * c + 4 * c) * bytes);
  EXPECT_EQ(units[2].fixed_bytes, (2 * c + 8 * c * c + 5 * c) * bytes);
  EXPECT_EQ(units[17].fixed_bytes, (19 * c + 2 * c) * bytes);
  // At least what products keep: x for qkv and projection, q, k and v; x for up, up's output, down's input.
  const int64_t x = 2 * 6 * c * 8;
  EXPECT_GE(units[1].activation_bytes, (1 + 3 + 1) * x);
  EXPECT_GE(units[2].activation_bytes, (1 + 4 + 4) * x);
  EXPECT_LE(units[1].activation_bytes, 12 * x);
  EXPECT_LE(units[2].activation_bytes, 20 * x);

  spec.optimizer.kind = OptimizerKind::Muon;  // keeps one number in matrices, and two elsewhere
  EXPECT_EQ(profiled_units(spec, 1)[1].fixed_bytes, (2 * c + 4 * c * c + 4 * c) * bytes - 4 * c * c * 8);
  spec.train.microbatch = 4;
  EXPECT_EQ(profiled_units(spec, 1)[2].activation_bytes, 2 * units[2].activation_bytes);
}

// A context rank has all parameters, and of two ranks half of the tokens.
TEST_F(MeasuredPartition, ContextRanksMeasurePartsOfSequencesTogether) {
  for (const ModelFamily family : {ModelFamily::Gpt2, ModelFamily::Bert}) {
    RunSpec spec = measured_spec(2);
    spec.model.family = family;
    spec.model.context = 24;
    const auto whole = profiled_units(spec, 1);
    spec.mesh.context = 2;
    for (const ContextParallel form : {ContextParallel::Ring, ContextParallel::Ulysses}) {
      spec.mesh.context_parallel = form;
      const auto units = profiled_units(spec, 1);
      ASSERT_EQ(units.size(), whole.size());
      for (size_t i = 0; i < units.size(); ++i) {
        EXPECT_EQ(units[i].fixed_bytes, whole[i].fixed_bytes) << units[i].name;
        EXPECT_GT(units[i].forward, 0) << units[i].name;
      }
      EXPECT_EQ(2 * units[2].activation_bytes, whole[2].activation_bytes) << units[2].name;
    }
    spec.mesh = {.pipe = 2, .context = 2, .tensor = 2, .sequence_parallel = true};
    EXPECT_EQ(profiled_units(spec, 1).size(), whole.size());
  }
}

TEST_F(MeasuredPartition, NarrowWeightsHaveMastersAndTensorRanksAShare) {
  RunSpec spec = measured_spec(2);
  spec.train.dtype = DType::BFloat16;
  spec.mesh.tensor = 2;
  const int64_t c = 24, norm = 2 * c, bytes = 2 + 4 * 4;
  EXPECT_EQ(profiled_units(spec, 1)[1].fixed_bytes, (norm + 4 * c * c / 2 + 3 * c / 2 + c) * bytes);
  spec.train.reduction = Reduction::Reproducible;  // 8 microbatches: three sums may wait
  EXPECT_EQ(profiled_units(spec, 1)[1].fixed_bytes, (norm + 4 * c * c / 2 + 3 * c / 2 + c) * (bytes + 3 * 4));
}

TEST_F(MeasuredPartition, KeepsLessWhereActivationsAreMadeAgain) {
  RunSpec spec = measured_spec(2);
  const auto all = profiled_units(spec, 1);
  spec.memory.recompute = "selective";
  const auto selected = profiled_units(spec, 1);
  spec.memory.recompute = "full";
  const auto inputs = profiled_units(spec, 1);
  const int64_t x = 6 * 24 * 8;
  for (const int half : {1, 2}) {
    EXPECT_LT(selected[half].activation_bytes, all[half].activation_bytes);
    EXPECT_EQ(inputs[half].activation_bytes, x) << "the output, which is the next one's input";
  }
  EXPECT_EQ(inputs[17].activation_bytes, all[17].activation_bytes) << "the head is never run again";
}

TEST_F(MeasuredPartition, FollowsCostsSpeedsScheduleAndLimit) {
  RunSpec spec = measured_spec(2);
  const auto cut = [&] { return spec::partition_text(spec.model, best_partition(spec, plain_units(8)).first_unit); };
  EXPECT_EQ(cut(), "4.5,3.5");  // 9.5 and 10
  spec.pipeline.speeds = {1, 3};
  EXPECT_EQ(cut(), "2,6");  // 4.5, and 15 / 3
  spec.pipeline.speeds = {};
  // Eight microbatches in flight on both ranks: half a block takes 9 MiB, an end of the model 16.
  spec.pipeline.schedule = "gpipe";
  spec.memory.limit_gb = 94.0 / 1024;
  EXPECT_EQ(cut(), "4,4");
  spec.memory.limit_gb = 87.0 / 1024;
  EXPECT_THROW(cut(), ConfigError);
}

TEST_F(MeasuredPartition, IsResolvedOnceAndSavedForTheRunThatGoesOn) {
  RunSpec spec = measured_spec(3);
  const auto measured = resolve_partition(spec, 1);
  ASSERT_TRUE(measured);
  EXPECT_EQ(spec::stage_units(spec, 3), measured->first_unit);
  EXPECT_FALSE(resolve_partition(spec, 1)) << "a list is left alone";
  EXPECT_EQ(spec::stage_units(spec, 3), measured->first_unit);

  spec.pipeline.partition = "0,0.5,7.5";  // what nobody would measure
  spec.data.paths = {"corpus.txt"};
  spec.data.tokenizer = "made-up";
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.step();
    trainer.save(folder_ + "/step-1", spec::to_toml(spec));
  });
  RunSpec again = measured_spec(3);
  again.train.resume = folder_ + "/step-1";
  EXPECT_FALSE(resolve_partition(again, 1));
  EXPECT_EQ(again.pipeline.partition, "0,0.5,7.5");
  RunSpec wider = measured_spec(4);
  wider.train.resume = again.train.resume;
  EXPECT_TRUE(resolve_partition(wider, 1)) << "another number of stages is another cut";
}

}  // namespace
}  // namespace braid::train::measured_partition_test
